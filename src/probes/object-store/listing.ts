import { ProbeError } from '../probe-error.ts';
import { childText, readXml, type XmlElement } from './xml.ts';

export interface StoredObject {
  key: string;
  sizeBytes: number;
  /** ms since the epoch, by the store's clock. */
  lastModifiedMs: number;
}

/** A part of a list, in the order of the keys' UTF-8 bytes, which is not that of time. */
export interface ObjectPage {
  objects: readonly StoredObject[];
  /** Asks for what comes after; none with the last page. */
  continuation?: string;
}

/** The document of an answer. Throws ProbeError `invalid_answer` for what is none. */
export function readDocument(body: Uint8Array): XmlElement {
  try {
    return readXml(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch (error) {
    const why = error instanceof SyntaxError ? error.message : 'not UTF-8';
    throw invalid(why, error);
  }
}

/** One page of ListObjectsV2 (`ListBucketResult`). Throws ProbeError `invalid_answer`. */
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
  if (!continuation) throw invalid('more is to come, and there is no <NextContinuationToken>');
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
  if (Number.isNaN(lastModifiedMs)) throw invalid(`<LastModified> that is no time: ${modified.slice(0, 40)}`);
  if (!/^\d{1,16}$/.test(size)) throw invalid(`<Size> that is no number: ${size.slice(0, 40)}`);
  return { key: isEncoded ? decodedKey(key) : key, sizeBytes: Number(size), lastModifiedMs };
}

/** Keys may hold what XML may not; therefore they are asked for in the encoding of forms. */
function decodedKey(key: string): string {
  try {
    return decodeURIComponent(key.replaceAll('+', ' '));
  } catch (error) {
    throw invalid('a <Key> that is not encoded as the answer says', error);
  }
}

function invalid(why: string, cause?: unknown): ProbeError {
  return new ProbeError('invalid_answer', `the object store’s answer is no list of objects: ${why}`, cause);
}
