import { type Fields, textOf } from '../lines/fields.ts';
import type { FileTally } from '../lines/tally.ts';
import { createLabelCache, findIn, keepIn } from './label-cache.ts';
import type { ServiceTally } from './service-tally.ts';

/** Whose lines a file may hold. */
export interface Parties {
  /** By service; undefined for a service that is configured and not watched. */
  readonly services: ReadonlyMap<string, ServiceTally | undefined>;
  /** For lines that name no service. */
  readonly unknown: ServiceTally;
  readonly roleSlot: number;
}

/** The service that a role field names: itself, or with a product in front (`<product>-history`). */
export function serviceOf(text: string, services: Iterable<string>): string | undefined {
  let longest: string | undefined;
  for (const service of services) {
    if (text === service) return service;
    const isSuffix = text.endsWith(`-${service}`) || text.endsWith(`_${service}`);
    if (isSuffix && service.length > (longest?.length ?? 0)) longest = service;
  }
  return longest;
}

/**
 * Counts a file that several services claim: each entry where its role field says, a continuation where its
 * entry was. Entries of a service that is not watched are passed over, with their continuations; what is no
 * entry, or names no service, counts as `unknown`.
 */
export function createSharedTally({ services, unknown, roleSlot }: Parties): FileTally {
  const roles = createLabelCache<string>([roleSlot]);
  const roleOf = (fields: Fields): string => {
    const known = findIn(roles, fields);
    if (known !== undefined) return known;
    const text = textOf(fields, roleSlot);
    const role = (text && serviceOf(text, services.keys())) || unknown.service;
    keepIn(roles, fields, role);
    return role;
  };
  const tallyOf = (role: string) => (services.has(role) ? services.get(role) : unknown);

  const tally: FileTally = {
    role: '',
    entry(fields, lineBytes) {
      tally.role = roleOf(fields);
      tallyOf(tally.role)?.entry(fields, lineBytes);
    },
    continuation: (lineBytes) => tallyOf(tally.role)?.continuation(lineBytes),
    blank: (lineBytes) => unknown.blank(lineBytes),
    dropped: (reason, lineBytes) => unknown.dropped(reason, lineBytes),
    skipped: (reason, bytes) => unknown.skipped(reason, bytes),
    settle() {
      unknown.settle();
      for (const service of services.values()) service?.settle();
    },
  };
  return tally;
}
