/** Words before a secret, also at the end of a longer word, such as `DB_PASSWORD` and `aws_secret_access_key`. */
export const secretWords =
  'password|passwd|passphrase|(?<![a-z])pass|pwd|secret|token|(?:api|access|account|secret|private|shared)[-_]?key|authorization|credentials?|cookie';

/** Schemes of the header `Authorization`: the schemes that IANA registers, and the usual schemes of products. */
const schemes =
  '(?:bearer|basic|token|digest|dpop|negotiate|ntlm|oauth|privatetoken|scram-sha-\\d+|hmac[\\w-]*|aws4-hmac-sha256|api-?key|key|splunk|sharedkey(?:lite)?)';

/**
 * The value behind an opening quote, which is in the group with the number `quote`: up to the closing quote. SQL doubles a quote
 * within a value.
 */
const behind = (quote: string) => `(?:\\${quote}\\${quote}|(?!\\${quote})(?:\\\\.|.))+`;

/** A word, its separator, and its value: up to the closing quote, or a single word. */
const secretsAfter = (separator: string) =>
  new RegExp(
    `(${secretWords})(${separator})(?:(\\\\*["'])${behind('3')}|(?:${schemes}\\s+)?[^\\s,;&)}\\]]+)`,
    'gi',
  );
// The headers of Go and Node.js are lists: `Authorization:[Bearer …]`, `"authorization":["Bearer …"]`.
const secretsInLogs = secretsAfter(`\\\\*["']?\\s*[=:]\\s*\\[?`);
/** In a sentence, a colon may begin an explanation: `secret: not found`. */
const secretsInSentences = secretsAfter(`\\\\*["']?\\s*=\\s*\\[?|\\\\*["']\\s*:\\s*\\[?|:(?=\\\\*["'])`);
/** Headers that are recognized in sentences, too: by their name, or by the scheme of their value. */
const headers = new RegExp(
  `\\b((?:x-[\\w-]*(?:token|key|secret)|authorization(?=\\\\*["']?\\s*[=:]\\s*\\[?\\\\*["']?${schemes}\\s))\\\\*["']?\\s*[=:]\\s*\\[?\\\\*["']?)(?:${schemes}\\s+)?[^\\s,;&"')}\\]\\\\]+`,
  'gi',
);
/** `Cookie: a=1; b=2`, up to the end of the header. */
const cookies = /\b((?:set-)?cookie\\*["']?\s*[:=]\s*\[?\\*["']?)[\w!#$%&*+.^`|~-]+=[^"'\]\\\r\n]*/gi;
/** Statements that set a password: `PASSWORD 'x'`, `PASSWORD('x')`, `IDENTIFIED BY 'x'`, `SET PASSWORD FOR a = 'x'`. */
const statements = new RegExp(
  `\\b(password(?:\\s+|\\s*\\(\\s*)|identified\\s+(?:(?:with|via)\\s+\\S+\\s+)?(?:by|as|using)\\s+(?:password\\s*\\(\\s*)?|set\\s+password\\s+for\\s[^=]{1,200}=\\s*)(\\\\*["'])${behind('2')}`,
  'gi',
);
/** An option and its value: `--password x`, and `"--password", "x"` of a list of arguments. */
const optionValues = new RegExp(
  `((?<![\\w-])--[\\w-]*(?:${secretWords})\\\\*["']?,?\\s+\\\\*["']?)[^\\s,"'\\]\\\\-][^\\s,"'\\]\\\\]*`,
  'gi',
);
const elements = new RegExp(`(<[\\w:.-]*(?:${secretWords})>)[^<]+`, 'gi');
const bearers = /\b(bearer|basic)\s+[\w.~+/=-]{8,}/gi;
/** The user part of a URL. It may contain `@`, and behind a colon also `/`, unless a port follows the colon. */
const userinfo =
  /\b([a-z][a-z0-9+.-]{0,30}:\/\/)(?:[^\s/@"'<>]*:(?!\d{1,5}(?:[/?#]|$))[^\s@"'<>]{0,200}@(?:[^\s/@"'<>]*@)*|(?:[^\s/@]+@)+)/gi;
/** A JSON Web Token: its header is an object in base64url. */
const webTokens = /(?<![\w-])eyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)*/g;
/** Tokens with a prefix of their own, of GitHub, GitLab, Slack, Stripe and Vault. */
const prefixedTokens = /\b(gh[oprsu]_|github_pat_|glpat-|xox[abeoprs]-|[rs]k_live_|hv[bs]\.)[\w.-]{16,}/g;
const privateKeys = /(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/gs;
/**
 * What allows a request by its URL alone, such as `X-Amz-Signature` of S3 and `sig` of Azure, and the signature in the header of
 * a request.
 */
const signatures = /((?:\b|-)(?:sig|signature)=|[?&][\w-]*(?:sig|signature|credential)=)[^&\s"',]+/gi;
/** The form of Go's driver for MySQL: `user:password@tcp(db:3306)/name`. */
const driverUserinfo = /(?<!\S)[^\s:@]*:\S*@(?=\w+\()/g;

const without = (text: string, secrets: RegExp): string =>
  text
    .replace(userinfo, '$1…@')
    .replace(driverUserinfo, '…@')
    .replace(privateKeys, '$1…')
    .replace(signatures, '$1…')
    .replace(cookies, '$1…')
    .replace(headers, '$1…')
    .replace(statements, '$1$2…')
    .replace(optionValues, '$1…')
    .replace(elements, '$1…')
    .replace(secrets, '$1$2$3…')
    .replace(webTokens, 'eyJ…')
    .replace(prefixedTokens, '$1…')
    .replace(bearers, '$1 …');

/** The text of a log without control characters, the credentials of URLs, and what follows words such as `password=`. */
export const redactedMessage = (text: string): string =>
  without(text, secretsInLogs).replace(
    /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g,
    ' ',
  );

/** The sentence of another program, without the credentials of URLs, and without what follows words such as `password=`. */
export const withoutCredentials = (text: string): string => without(text, secretsInSentences);

/** A part of a URL's path that looks like a token: it is long and has a digit. */
const tokenInPath = /(?<=[^/:]\/)(?=[^/]*\d)[^/]{8,}(?=\/|$)/g;

/**
 * A text without the parts of URLs that may be secret: the user part, parts of the path that look like tokens, and the values of
 * the query.
 */
export function withoutUrlSecrets(text: string): string {
  return (
    text
      // Each word and each key is tried once, from its start: the text may be long, and contain neither @ nor =.
      .replace(/(?<!\S)([a-z][\w+.-]*:\/\/)?\S*@/gi, (_, scheme = '') => `${scheme}…@`)
      .replace(/([?&][^=&?\s]*)=[^&\s]*/g, '$1=…')
      .replace(/\bhttps?:\/\/[^\s?#"']+/gi, (url) => url.replace(tokenInPath, '…'))
  );
}

/** A URL for logs and pages: without user, query and fragment, and without parts of its path that may be secret. */
export function shownUrl(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return withoutUrlSecrets(`${protocol}//${host}${pathname}`);
}

const secretParameter = new RegExp(`(?:${secretWords}|sig|signature|key)$`, 'i');
const isLikeToken = (text: string): boolean => text.length >= 8 && /\d/.test(text);

/** The query of a URL, the values in it that may be secret, and the parts of its path that look like tokens. */
export function urlSecrets(url: string): string[] {
  const { origin, pathname, search, searchParams } = new URL(url);
  const values = [...searchParams]
    .filter(([name, value]) => secretParameter.test(name) || isLikeToken(value))
    .map(([, value]) => value);
  return [search, ...values, ...((origin + pathname).match(tokenInPath) ?? [])];
}
