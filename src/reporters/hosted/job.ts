import type { SeriesView } from '../../core/model.ts';

/** The value of `job` (OTLP: `service.name`): the role for relayed series, the agent for all others. */
export function jobOf({ relayed, service }: SeriesView): string {
  return relayed && service !== '' ? service : 'svc-agent';
}

/** Who reports. */
export interface Origin {
  /** The value of `instance` (OTLP: `service.instance.id`). */
  readonly instance: string;
  /** OTLP's `host.name`. */
  readonly hostName: string;
  /** The agent's version. */
  readonly version: string;
  /** In front of every name, sanitized; `''` for none. */
  readonly prefix: string;
}
