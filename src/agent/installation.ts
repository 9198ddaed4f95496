import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The package's version. The build puts it here; a program that runs from source does not know it. */
export const version: string = process.env.SVC_AGENT_VERSION ?? '0.0.0-source';

/** The folder with this name beside `dist/` (or beside `src/`). Throws if there is none. */
export function shippedFolder(name: string): string {
  const found = ['../', '../../', '../../../']
    .map((up) => new URL(`${up}${name}`, import.meta.url))
    .find((url) => existsSync(url));
  if (!found) throw new Error(`the folder ${name} is not where the agent was installed`);
  return fileURLToPath(found);
}
