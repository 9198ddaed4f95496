import type { TextFormat } from '../../core/text-formats.ts';

/** Where an archive lies (spec, Archival URI forms). */
export interface ArchivalUri {
  scheme: string;
  /** Empty for files. */
  bucket: string;
  /** The directory of files; else what all keys begin with: empty, or with a slash at its end and none in front. */
  path: string;
}

/** No credentials, no query. */
const shape =
  /^(?:(file):\/\/(\/[^\s?#]+)|(?!file:)([a-z][a-z0-9+.-]*):\/\/([A-Za-z0-9][\w.-]*)((?:\/[^\s?#]*)?))$/;

export const archivalUri: TextFormat<ArchivalUri> = {
  fault: 'not an archival URI; use <scheme>://<bucket>/<path>/ or file:///<directory>/',
  read(text) {
    const [, file, directory = '', scheme, bucket = '', path = ''] = shape.exec(text) ?? [];
    try {
      if (file !== undefined) return { scheme: file, bucket, path: decodeURIComponent(directory) };
      if (scheme === undefined) return undefined;
      const prefix = decodeURIComponent(path).replace(/^\/+|\/+$/g, '');
      return { scheme, bucket, path: prefix === '' ? '' : `${prefix}/` };
    } catch {
      return undefined;
    }
  },
};
