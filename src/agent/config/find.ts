import { existsSync } from 'node:fs';
import { resolve } from 'node:path';

/** Where `agent.yaml` is looked for when nobody names it (CONTRACT, Command line). */
const usualPlaces = ['agent.yaml', '/etc/svc-agent/agent.yaml'];

/** The first of the usual places that is there, as messages call it; undefined if none is. */
export function findConfig(cwd: string): string | undefined {
  return usualPlaces.find((place) => existsSync(resolve(cwd, place)));
}
