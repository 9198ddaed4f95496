/** Words before a secret, also at the end of a longer word, such as `DB_PASSWORD` and `aws_secret_access_key`. */
const secretWords =
  'password|passwd|passphrase|(?<![a-z])pass|pwd|secret|token|(?:api|access|secret|private)[-_]?key|authorization|credentials?|cookie';

/** A word, what separates it from its value, and the value: up to the quote that ends it, or a single word. */
const secretsAfter = (separator: string) =>
  new RegExp(
    `(${secretWords})(${separator})(?:(\\\\*["'])(?:(?!\\3)(?:\\\\.|.))+|(?:(?:bearer|basic)\\s+)?[^\\s,;&)}\\]]+)`,
    'gi',
  );
const secretsInLogs = secretsAfter(`\\\\*["']?\\s*[=:]\\s*`);
/** In a sentence, a colon may begin an explanation: `secret: not found`. */
const secretsInSentences = secretsAfter(`\\\\*["']?\\s*=\\s*|\\\\*["']\\s*:\\s*`);
const bearers = /\b(bearer|basic)\s+[\w.~+/=-]{8,}/gi;
const userinfo = /\b([a-z][a-z0-9+.-]{0,30}:\/\/)[^\s/@]+@/gi;
/** A JSON Web Token: its header is an object in base64url. */
const webTokens = /(?<![\w-])eyJ[\w-]{6,}\.[\w-]{6,}(?:\.[\w-]*)*/g;
const privateKeys = /(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/gs;
/** What allows a request by its URL alone: `X-Amz-Signature` of S3, `sig` of Azure. */
const signatures = /([?&][\w-]*(?:sig|signature|credential)=)[^&\s"']+/gi;
/** The form of Go's driver for MySQL: `user:password@tcp(db:3306)/name`. */
const driverUserinfo = /(?<!\S)[^\s:@]*:\S*@(?=\w+\()/g;

const without = (text: string, secrets: RegExp): string =>
  text
    .replace(userinfo, '$1…@')
    .replace(driverUserinfo, '…@')
    .replace(privateKeys, '$1…')
    .replace(signatures, '$1…')
    .replace(secrets, '$1$2$3…')
    .replace(webTokens, 'eyJ…')
    .replace(bearers, '$1 …');

/** The text of a log without control characters, the credentials of URLs, and what follows words such as `password=`. */
export const redactedMessage = (text: string): string =>
  without(text, secretsInLogs).replace(
    /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g,
    ' ',
  );

/** The sentence of another program, without the credentials of URLs, and without what follows words such as `password=`. */
export const withoutCredentials = (text: string): string => without(text, secretsInSentences);
