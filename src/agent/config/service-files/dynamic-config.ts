import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { textAt } from '../tree.ts';
import type { ServiceFiles } from './read.ts';

/** Where the service's own files name the file of their dynamic configuration; the newest spelling comes first. */
const places = [
  ['dynamicconfig', 'filebased', 'filepath'],
  ['dynamicconfig', 'filepath'],
  ['dynamicConfigClient', 'filepath'],
];

/**
 * The absolute path of the service's dynamic configuration file; undefined if the service's files name none. The service reads a
 * relative path from the directory that it runs in, which is usually the directory above its configuration. The first place with
 * a file is used.
 */
export function dynamicConfigFile({ tree, files }: Pick<ServiceFiles, 'tree' | 'files'>): string | undefined {
  const path = places.map((place) => textAt(tree, ...place)).find((text) => text !== undefined);
  if (path === undefined) return undefined;
  const candidates = files.flatMap((file) => {
    const beside = dirname(file);
    return [beside, dirname(beside), dirname(dirname(beside))].map((folder) => resolve(folder, path));
  });
  return candidates.find(existsSync) ?? candidates[0];
}
