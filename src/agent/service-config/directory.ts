import { accessSync, constants, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { systemCode } from '../../core/errors.ts';

const anybodyMayWrite = 0o222;

/**
 * What keeps a service from writing its log file here, or undefined. Whether the service's user is allowed to
 * write cannot be known; that nobody is, can.
 */
export function directoryTrouble(outputFile: string, cwd: string): string | undefined {
  const directory = dirname(resolve(cwd, outputFile));
  try {
    const { mode } = statSync(`${directory}/`);
    if ((mode & anybodyMayWrite) === 0) return 'its directory is read-only';
    accessSync(directory, constants.W_OK);
    return undefined;
  } catch (error) {
    const code = systemCode(error);
    if (code === 'ENOENT') return 'its directory is missing';
    if (code === 'ENOTDIR') return 'its directory is a file';
    return code === 'EROFS' ? 'its directory is read-only' : undefined;
  }
}
