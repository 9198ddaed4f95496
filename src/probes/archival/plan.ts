import { archiveFailureReasons } from '../../core/reasons.ts';
import { objectStoreAddress } from '../../core/text-formats.ts';
import type { Finding, Probe, ProbeDeps, ProbeRow, ProbeSchedule } from '../probe.ts';
import {
  type ArchivalOptions,
  type ArchivalUri,
  type ArchiveOptions,
  type ArchiveTarget,
  archivalUri,
  type DomainDefaults,
  schemes,
} from './archives.ts';

export interface ArchivesPlanOptions {
  archival?: ArchivalOptions;
  domainDefaults?: DomainDefaults;
}

/** Archives change in hours, and a list request costs money. */
const archiveSchedule: ProbeSchedule = { intervalMs: 60_000, timeoutMs: 20_000 };

/**
 * One row for each archive that is written to or read and for which `domainDefaults` has a URI. An archive of an unknown scheme
 * has no `svc_archival_up`; its finding has the reason.
 */
export function planArchives({ archival, domainDefaults }: ArchivesPlanOptions): ProbeRow[] {
  return (['history', 'visibility'] as const).flatMap((archive) => {
    const section = archival?.[archive];
    const text = domainDefaults?.archival[archive]?.uri ?? '';
    const uri = archivalUri.read(text);
    // A paused archive is still read, and will be written to again.
    if (!section || !uri || (section.status === 'disabled' && !section.enableRead)) return [];
    const isDefault = domainDefaults?.archival[archive]?.status === 'enabled';
    return [archiveRow(section, uri, { archive, scheme: uri.scheme, uri: text, isDefault })];
  });
}

type ArchivePlace = Pick<ArchiveTarget, 'archive' | 'scheme' | 'uri' | 'isDefault'>;

/** What is checked about an archive, and how. */
function archiveCheck(
  { providers, status, enableRead, writeCheck, readCheck }: ArchiveOptions,
  uri: ArchivalUri,
  place: ArchivePlace,
) {
  const scheme = Object.hasOwn(schemes, uri.scheme) ? schemes[uri.scheme] : undefined;
  const provider = providers.find(({ kind }) => kind === scheme?.providerKind);
  const isWritten = status === 'enabled';
  const isFile = uri.scheme === 'file';
  const target: ArchiveTarget = {
    ...place,
    isWritten,
    writeCheck: isWritten && (writeCheck ?? isFile),
    readCheck: enableRead && (readCheck ?? isFile),
    modes: isFile ? { file: modeOf(provider?.fileMode), directory: modeOf(provider?.dirMode) } : undefined,
  };
  const open = async ({
    clock,
    readSecret,
    tracing,
  }: Pick<ProbeDeps, 'clock' | 'readSecret' | 'tracing'>): Promise<Probe> => {
    if (!scheme) return unknownScheme(uri.scheme);
    if (scheme.providerKind === 'filestore') {
      const { createDirectoryProbe } = await import('./directory.ts');
      return createDirectoryProbe(uri.path, target, { clock });
    }
    const { createBucketProbe } = await import('./bucket.ts');
    const region = provider?.region ?? scheme.region;
    const server = objectStoreAddress.read(provider?.endpoint ?? scheme.endpoint(region))!;
    const bucket = { endpoint: server, region, bucket: uri.bucket, prefix: uri.path };
    return createBucketProbe(bucket, target, { clock, readSecret, tracing });
  };
  return { scheme, target, open, key: JSON.stringify([target, provider]) };
}

/** An octal mode in the form of the service's configuration; undefined for anything else. */
function modeOf(text = ''): number | undefined {
  return /^[0-7]{3,4}$/.test(text) ? Number.parseInt(text, 8) & 0o777 : undefined;
}

/** Returns the probe of an archive that a domain names, except for the archive of new domains, which has a row. */
export function ownArchives({ archival, domainDefaults }: ArchivesPlanOptions, deps: ProbeDeps) {
  return (archive: 'history' | 'visibility', text: string): Promise<Probe> | undefined => {
    const section = archival?.[archive];
    const uri = archivalUri.read(text);
    if (!section) return undefined;
    if (!uri) {
      const finding: Finding = { reason: 'failed', msg: archivalUri.fault };
      return Promise.resolve({ check: async () => finding });
    }
    const usual = archivalUri.read(domainDefaults?.archival[archive]?.uri ?? '');
    if (JSON.stringify(usual) === JSON.stringify(uri)) return undefined;
    return archiveCheck(section, uri, { archive, scheme: uri.scheme, uri: text }).open(deps);
  };
}

function archiveRow(section: ArchiveOptions, uri: ArchivalUri, place: ArchivePlace): ProbeRow {
  const { scheme, target, open: openArchive, key } = archiveCheck(section, uri, place);
  const open = async (deps: ProbeDeps): Promise<Probe> => {
    const probe = await openArchive(deps);
    if (!scheme) return probe;
    const { countingDeletions } = await import('./unarchived.ts');
    return countingDeletions(probe, target, deps);
  };
  return {
    name: `archive/${place.archive}`,
    kind: 'archive',
    target: place.uri,
    service: '',
    schedule: archiveSchedule,
    shows: scheme
      ? { up: { name: 'svc_archival_up', labels: { archive: place.archive, scheme: place.scheme } } }
      : {},
    reasons: archiveFailureReasons,
    key,
    open,
  };
}

function unknownScheme(scheme: string): Probe {
  const msg = `archives of scheme ${scheme} cannot be checked; known schemes: ${Object.keys(schemes).join(', ')}`;
  return { check: async () => ({ reason: 'failed', msg }) };
}
