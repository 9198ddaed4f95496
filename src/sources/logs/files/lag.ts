import type { Trail } from './trail.ts';

/** Hears how many bytes of a service are written and not yet counted; `unknown` is what several claim. */
export type HearLag = (service: string, bytes: number) => void;

export interface Lag {
  /** Adds up the lag of every file, and tells what changed. */
  tell(trails: Iterable<Trail>, services: Iterable<string>): void;
  /** The next `tell` tells everything. */
  forget(): void;
}

export const lagOf = ({ compressed, nowSize, offset }: Trail) =>
  compressed ? 0 : Math.max(0, nowSize - offset);

export function createLag(hear: HearLag): Lag {
  const told = new Map<string, number>();
  return {
    tell(trails, services) {
      const lags = new Map<string, number>();
      for (const service of services) lags.set(service, 0);
      for (const service of told.keys()) lags.set(service, 0);
      for (const trail of trails) {
        const service = trail.claimants.length === 1 ? trail.claimants[0]! : 'unknown';
        lags.set(service, (lags.get(service) ?? 0) + lagOf(trail));
      }
      for (const [service, bytes] of lags) {
        if (told.get(service) === bytes) continue;
        told.set(service, bytes);
        hear(service, bytes);
      }
    },
    forget: () => told.clear(),
  };
}
