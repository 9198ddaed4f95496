import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The package's version; the build puts it here, from source it is unknown. */
export const version: string = process.env.SVC_AGENT_VERSION ?? '0.0.0-source';

/** The folder of that name beside `dist/` (or beside `src/`). Throws if there is none. */
export function shippedFolder(name: string): string {
  const found = ['../', '../../', '../../../']
    .map((up) => new URL(`${up}${name}`, import.meta.url))
    .find((url) => existsSync(url));
  if (!found) throw new Error(`the folder ${name} is not where the agent was installed`);
  return fileURLToPath(found);
}
