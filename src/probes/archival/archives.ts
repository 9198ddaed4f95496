import type { TextFormat } from '../../core/text-formats.ts';
import type { Sample } from '../probe.ts';

// Describes archives: their options, their URIs and the schemes of URIs.

export const archivalStatuses = ['enabled', 'disabled', 'paused'] as const;
type ArchivalStatus = (typeof archivalStatuses)[number];

/** The storage of archived data. Unknown kinds have their own key. */
export interface ArchivalProvider {
  kind: string;
  region?: string;
  endpoint?: string;
  /** Permissions that the service gives to new files and directories, as octal text: `0666`. */
  fileMode?: string;
  dirMode?: string;
}

/** The options of one section of `archival` (spec, Archival configuration). */
export interface ArchiveOptions {
  status: ArchivalStatus;
  enableRead: boolean;
  /** Whether a small object is written, read and deleted at each check. Default: for files, not for object stores. */
  writeCheck?: boolean;
  /** Whether the newest object is read at each check if reads are enabled. Default: for files, not for object stores. */
  readCheck?: boolean;
  providers: readonly ArchivalProvider[];
}

export interface ArchivalOptions {
  history?: ArchiveOptions;
  visibility?: ArchiveOptions;
}

/** The options of `domainDefaults.archival`: the settings of a domain that has none of its own. */
export interface DomainDefaults {
  archival: Partial<Record<'history' | 'visibility', { status: ArchivalStatus; uri?: string }>>;
}

/** The location of an archive (spec, Archival URI forms). */
export interface ArchivalUri {
  scheme: string;
  /** The bucket; empty for files. */
  bucket: string;
  /**
   * For files, the directory. For object stores, the prefix of all keys; it is empty, or ends with a slash, and never begins
   * with a slash.
   */
  path: string;
}

/** Matches a URI without credentials and query. */
const uriShape =
  /^(?:(file):\/\/(\/[^\s?#]+)|(?!file:)([a-z][a-z0-9+.-]*):\/\/([A-Za-z0-9][\w.-]*)((?:\/[^\s?#]*)?))$/;

export const archivalUri: TextFormat<ArchivalUri> = {
  fault: 'not an archival URI; use <scheme>://<bucket>/<path>/ or file:///<directory>/',
  read(text) {
    const [, file, directory = '', scheme, bucket = '', path = ''] = uriShape.exec(text) ?? [];
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

/** The provider of a scheme, and the defaults of an object store. */
type SchemeRow =
  | { providerKind: 'filestore' }
  | { providerKind: 'objectstore'; region: string; endpoint(region: string): string };

/** Every scheme that the agent can check. */
export const schemes: Readonly<Record<string, SchemeRow>> = {
  file: { providerKind: 'filestore' },
  s3: {
    providerKind: 'objectstore',
    region: 'us-east-1',
    endpoint: (region) => `https://s3.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}`,
  },
  // Its XML API accepts the same requests and signatures, with HMAC keys.
  gs: {
    providerKind: 'objectstore',
    region: 'auto',
    endpoint: () => 'https://storage.googleapis.com',
  },
};

/** One archive as the probe checks it. */
export interface ArchiveTarget {
  archive: 'history' | 'visibility';
  scheme: string;
  uri: string;
  /** Whether the service writes to it; if not, it is only read, for example while archival is paused. */
  isWritten: boolean;
  /** Whether a small object is written, read and deleted. */
  writeCheck: boolean;
  /** Whether new domains archive to it. */
  isDefault?: boolean;
  /** Whether the beginning of the newest object is read. */
  readCheck?: boolean;
  /** Permissions that the service gives to new files and directories. */
  modes?: { file?: number; directory?: number };
}

/** The gauge of the newest object; undefined while its time is not known. */
export function newestGauge({ archive, scheme }: ArchiveTarget, newestMs: number | undefined): Sample[] {
  if (newestMs === undefined) return [];
  const name = 'svc_archival_newest_object_timestamp_seconds';
  return [{ name, labels: { archive, scheme }, value: newestMs / 1000 }];
}

export function later(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Math.max(one, other);
}
