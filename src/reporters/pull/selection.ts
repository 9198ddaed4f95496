import type { GatherRequest } from '../../core/ports.ts';

/** Which services a block reports, and which of them are watched roles. */
export interface Shown {
  /** Whether series of this service (`''`: of none) are reported here. */
  shows(service: string): boolean;
  /** Whether this is a role that the agent watches. */
  watches(service: string): boolean;
}

/** What one scrape asks for. */
export interface Selection {
  /** Equal for scrapes that ask for the same. */
  readonly key: string;
  readonly takes: GatherRequest['takes'];
  /** The role whose state decides the answer's status. */
  readonly role?: string;
}

/**
 * What a scrape's query selects (CONTRACT, HTTP): everything; with `?service=<role>` what this role sent itself;
 * with `?service=agent` the rest, so that no series is in two and none in neither. Undefined for any other value.
 */
export function selectionOf(query: URLSearchParams, { shows, watches }: Shown): Selection | undefined {
  const [service, ...more] = query.getAll('service');
  if (service === undefined) return { key: 'all', takes: (series) => shows(series.service) };
  if (more.length > 0) return undefined;
  if (service === 'agent') {
    const takes: Selection['takes'] = (series) =>
      shows(series.service) && !(series.relayed && watches(series.service));
    return { key: 'rest', takes };
  }
  if (!watches(service) || !shows(service)) return undefined;
  const takes: Selection['takes'] = (series) => series.relayed && series.service === service;
  return { key: `role ${service}`, takes, role: service };
}
