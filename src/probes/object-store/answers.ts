import type { ArchiveFailureReason } from '../../core/reasons.ts';
import { excerpt, ProbeError } from '../probe.ts';

/** One element of a document: its name without namespace prefix, its children, and its text. */
export interface XmlElement {
  name: string;
  /** The element's own text with entities replaced, including whitespace. */
  text: string;
  children: readonly XmlElement[];
}

interface OpenElement extends XmlElement {
  /** The name with its prefix, as in the end tag. */
  tag: string;
  children: XmlElement[];
}

const startTag = /<([A-Za-z_][\w.:-]*)(?:\s+[A-Za-z_][\w.:-]*\s*=\s*(?:"[^"<]*"|'[^'<]*')){0,32}\s*(\/?)>/y;
const endTag = /<\/([A-Za-z_][\w.:-]*)\s*>/y;
/** The start and end of markup that contains neither elements nor text to decode. */
const sections = [
  ['<!--', '-->'],
  ['<![CDATA[', ']]>'],
  ['<?', '?>'],
] as const;

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };
const deepest = 32;
/** The maximum number of elements, ten times a full page. */
const mostElements = 100_000;

/**
 * Reads one XML document of an object store: elements and text; ignores attributes, comments and processing
 * instructions. Throws SyntaxError for a document that is not well-formed, and for a document type, which could define
 * entities.
 */
export function readXml(text: string): XmlElement {
  const top: OpenElement = { name: '', tag: '', text: '', children: [] };
  const open = [top];
  let at = text.startsWith('\ufeff') ? 1 : 0;
  let tags = 0;
  while (at < text.length) {
    const next = text.indexOf('<', at);
    const end = next < 0 ? text.length : next;
    if (end > at) open.at(-1)!.text += decoded(text.slice(at, end));
    at = next < 0 ? end : takeMarkup(text, next, open);
    if (++tags > 2 * mostElements) throw new SyntaxError(`more than ${mostElements} elements`);
  }
  const [root] = top.children;
  if (open.length > 1) throw new SyntaxError(`<${open.at(-1)!.tag}> is not closed`);
  if (!root || top.children.length > 1 || top.text.trim() !== '')
    throw new SyntaxError('not a single element');
  return root;
}

/** Reads one tag or section; returns its end. */
function takeMarkup(text: string, at: number, open: OpenElement[]): number {
  const here = open.at(-1)!;
  startTag.lastIndex = at;
  const start = startTag.exec(text);
  if (start) {
    if (open.length > deepest) throw new SyntaxError(`elements more than ${deepest} deep`);
    const tag = start[1]!;
    const element = { name: tag.slice(tag.indexOf(':') + 1), tag, text: '', children: [] };
    here.children.push(element);
    if (start[2] === '') open.push(element);
    return startTag.lastIndex;
  }
  endTag.lastIndex = at;
  const end = endTag.exec(text);
  if (end) {
    if (here.tag !== end[1]) throw new SyntaxError(`</${end[1]}> at character ${at} closes no open element`);
    open.pop();
    return endTag.lastIndex;
  }
  return takeSection(text, at, here);
}

function takeSection(text: string, at: number, here: OpenElement): number {
  const found = sections.find(([begin]) => text.startsWith(begin, at));
  const end = found ? text.indexOf(found[1], at + found[0].length) : -1;
  if (!found || end < 0) throw new SyntaxError(`not XML at character ${at}`);
  if (found[0] === '<![CDATA[') here.text += text.slice(at + found[0].length, end);
  return end + found[1].length;
}

/** The text of the first child with this name. */
function childText({ children }: XmlElement, child: string): string | undefined {
  return children.find(({ name }) => name === child)?.text;
}

function decoded(text: string): string {
  if (!text.includes('&')) return text;
  return text.replace(/&(?:#x([\dA-Fa-f]{1,6})|#(\d{1,7})|(\w+));|&/g, (whole, hex, decimal, word) => {
    if (word !== undefined && Object.hasOwn(entities, word)) return entities[word]!;
    const point = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
    const isCharacter = point <= 0x10ffff && !(point >= 0xd800 && point <= 0xdfff);
    if (!isCharacter) throw new SyntaxError(`unknown entity ${whole}`);
    return String.fromCodePoint(point);
  });
}

export interface ObjectStoreAnswer {
  status: number;
  /** The value of a header by its name in lower case; the first value if there are several. */
  header(name: string): string | undefined;
  body: Buffer;
}

export interface StoredObject {
  key: string;
  sizeBytes: number;
  /** When the object was last modified, ms since the epoch, on the store's clock. */
  lastModifiedMs: number;
  /** MD5 of the content, hexadecimal; missing for an object that was uploaded in parts. */
  md5?: string;
}

/** One page of a list, in the order of the keys' UTF-8 bytes, not of time. */
export interface ObjectPage {
  objects: readonly StoredObject[];
  /** The token for the next page; missing on the last page. */
  continuation?: string;
}

/** The XML document of a response. Throws ProbeError `invalid_answer`. */
function readDocument(body: Uint8Array): XmlElement {
  try {
    return readXml(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch (error) {
    const why = error instanceof SyntaxError ? error.message : 'not UTF-8';
    throw invalid(why, error);
  }
}

/** Reads one page of ListObjectsV2 (`ListBucketResult`). Throws ProbeError `invalid_answer`. */
export function readPage(body: Uint8Array): ObjectPage {
  const root = readDocument(body);
  if (root.name !== 'ListBucketResult') throw invalid(`<${root.name}> instead of <ListBucketResult>`);
  const isEncoded = childText(root, 'EncodingType') === 'url';
  const objects = root.children
    .filter(({ name }) => name === 'Contents')
    .map((element) => readObject(element, isEncoded));
  const truncated = childText(root, 'IsTruncated')?.trim();
  if (truncated !== 'true' && truncated !== 'false') throw invalid('no <IsTruncated> of true or false');
  if (truncated === 'false') return { objects };
  const continuation = childText(root, 'NextContinuationToken');
  if (!continuation) throw invalid('truncated, and without <NextContinuationToken>');
  return { objects, continuation };
}

function readObject(element: XmlElement, isEncoded: boolean): StoredObject {
  const key = childText(element, 'Key');
  const modified = childText(element, 'LastModified')?.trim() ?? '';
  const size = childText(element, 'Size')?.trim() ?? '';
  if (!key) throw invalid('an object without <Key>');
  const lastModifiedMs = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/.test(modified)
    ? Date.parse(modified)
    : NaN;
  if (Number.isNaN(lastModifiedMs)) throw invalid(`<LastModified> is not a time: ${modified.slice(0, 40)}`);
  if (!/^\d{1,16}$/.test(size)) throw invalid(`<Size> is not a number: ${size.slice(0, 40)}`);
  const md5 = /^"?([0-9a-f]{32})"?$/i.exec(childText(element, 'ETag')?.trim() ?? '')?.[1]?.toLowerCase();
  const object = { key: isEncoded ? decodedKey(key) : key, sizeBytes: Number(size), lastModifiedMs };
  return md5 === undefined ? object : { ...object, md5 };
}

/** Decodes a key. Keys may contain characters that are not allowed in XML, so the list is requested with form encoding. */
function decodedKey(key: string): string {
  try {
    return decodeURIComponent(key.replaceAll('+', ' '));
  } catch (error) {
    throw invalid('a <Key> that is not encoded as declared', error);
  }
}

function invalid(why: string, cause?: unknown): ProbeError {
  return new ProbeError('invalid_answer', `the response is not a list of objects: ${why}`, cause);
}

/** Reasons by error code (S3 API reference, List of error codes). For other codes the status decides. */
const codes: Readonly<Record<string, ArchiveFailureReason>> = {
  NoSuchBucket: 'not_found',
  NoSuchKey: 'not_found',
  AccessDenied: 'denied',
  AllAccessDisabled: 'denied',
  AccountProblem: 'denied',
  SignatureDoesNotMatch: 'denied',
  InvalidAccessKeyId: 'credentials',
  InvalidToken: 'credentials',
  ExpiredToken: 'credentials',
  TokenRefreshRequired: 'credentials',
  RequestTimeTooSkewed: 'clock_skew',
};

const advice: Readonly<Record<string, string>> = {
  SignatureDoesNotMatch: 'the secret key does not belong to the access key, or the region is wrong',
  RequestTimeTooSkewed: 'the clock of this machine or of the store is wrong',
};

/** A response other than 200 as ProbeError, with an excerpt of the store's message. */
export function refusalOf({ status, header, body }: ObjectStoreAnswer): ProbeError {
  const error = errorOf(body);
  const code = (error && childText(error, 'Code')?.trim()) ?? '';
  const reason = Object.hasOwn(codes, code) ? codes[code]! : reasonOfStatus(status);
  const details = [`status ${status}`, code, error && childText(error, 'Message')].filter(Boolean).join(', ');
  const region = header('x-amz-bucket-region') ?? (error && childText(error, 'Region'));
  const elsewhere = region ? `the bucket is in region ${excerpt(region)}` : undefined;
  const location = status >= 300 && status < 400 ? header('location') : undefined;
  const hint = advice[code] ?? elsewhere ?? (location && `it redirects to ${excerpt(location)}`);
  return new ProbeError(reason, `the object store refused: ${excerpt(details)}${hint ? `; ${hint}` : ''}`);
}

function reasonOfStatus(status: number): ArchiveFailureReason {
  if (status === 401) return 'credentials';
  return status === 403 ? 'denied' : 'http_status';
}

function errorOf(body: Uint8Array): XmlElement | undefined {
  try {
    const root = readDocument(body);
    return root.name === 'Error' ? root : root.children.find(({ name }) => name === 'Error');
  } catch {
    return undefined;
  }
}
