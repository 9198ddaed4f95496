import { archiveFailureReasons } from '../../core/reasons.ts';
import type { ProbesOptions } from '../options.ts';
import type { Probe, ProbeRow } from '../probe.ts';
import type { ArchiveOptions } from './options.ts';
import { schemes } from './schemes.ts';
import { type ArchiveTarget, archiveUp } from './target.ts';
import { type ArchivalUri, archivalUri } from './uri.ts';

/** Archives change in hours; a list request costs money. */
const schedule = { intervalMs: 60_000, timeoutMs: 20_000 };

/**
 * One row for each archive that is written to or read and that `domainDefaults` gives a URI. A scheme that is not
 * known has no `svc_archival_up`, as nothing is known of it; its finding says why.
 */
export function planArchives({ archival, domainDefaults }: ProbesOptions): ProbeRow[] {
  return (['history', 'visibility'] as const).flatMap((archive) => {
    const section = archival?.[archive];
    const written = domainDefaults?.archival[archive]?.uri;
    const uri = written === undefined ? undefined : archivalUri.read(written);
    if (!section || !uri || written === undefined || !isUsed(section)) return [];
    const isWritten = section.status === 'enabled';
    return [rowOf(section, uri, { archive, scheme: uri.scheme, uri: written, isWritten })];
  });
}

/** A paused archive goes on being read, and will be written to again. */
function isUsed({ status, enableRead }: ArchiveOptions): boolean {
  return status !== 'disabled' || enableRead;
}

function rowOf({ providers }: ArchiveOptions, uri: ArchivalUri, target: ArchiveTarget): ProbeRow {
  const scheme = Object.hasOwn(schemes, uri.scheme) ? schemes[uri.scheme] : undefined;
  const provider = providers.find(({ kind }) => kind === scheme?.providerKind);
  return {
    name: `archive/${target.archive}`,
    kind: 'archive',
    target: target.uri,
    service: '',
    schedule,
    shows: scheme ? { up: archiveUp(target) } : {},
    reasons: archiveFailureReasons,
    key: JSON.stringify([target, provider]),
    open: async (deps) => scheme?.open({ uri, provider, target }, deps) ?? unknownScheme(target),
  };
}

function unknownScheme({ scheme }: ArchiveTarget): Probe {
  const known = Object.keys(schemes).join(', ');
  const msg = `archives of scheme ${scheme} cannot be looked at; known are ${known}`;
  return { check: async () => ({ reason: 'failed', msg }) };
}
