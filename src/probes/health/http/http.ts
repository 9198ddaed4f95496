import type { Finding } from '../../probe.ts';
import { type Dial, type HealthDeps, lookOver } from '../look.ts';
import { getOver } from './exchange.ts';
import { verdictOf } from './verdict.ts';

/** Asks a role how it is, by the spec's `GET /health`. Redirects are not followed. */
export function httpHealth(
  { dial, url }: { dial: Dial; url: URL },
  deps: HealthDeps,
  signal: AbortSignal,
): Promise<Finding> {
  return lookOver(dial, deps, signal, async (line) => verdictOf(await getOver(line, url)));
}
