import { copyFileSync, mkdirSync, readdirSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { systemCode } from '../../core/errors.ts';
import { cannotRead } from './backup-content.ts';
import { CannotLook } from './rehearsal.ts';
import { mebibytes, type Sandbox, sizeOf } from './sandbox.ts';

/**
 * Copies a backup that is a directory into the directory `name` of the sandbox, for the server's user. `leaveOut` is called with
 * the names at the top. Throws CannotLook for a link, which may lead into the real store, for what cannot be read, and if there
 * is too little space.
 */
export async function copyBackup(
  backup: string,
  sandbox: Sandbox,
  leaveOut: (name: string) => boolean = () => false,
  name = 'data',
): Promise<string> {
  const bytes = await sizeOf(backup);
  const { bavail, bsize } = statfsSync(sandbox.path);
  if (bytes > bavail * bsize)
    throw new CannotLook(`the backup has ${mebibytes(bytes)}, and ${mebibytes(bavail * bsize)} are free`);
  const data = sandbox.makeDirectory(name);
  const copy = async (from: string, to: string, isTop: boolean): Promise<void> => {
    for (const entry of readdirSync(from, { withFileTypes: true })) {
      if (sandbox.signal.aborted) throw sandbox.signal.reason;
      if (isTop && leaveOut(entry.name)) continue;
      const [source, target] = [join(from, entry.name), join(to, entry.name)];
      if (!entry.isFile() && !entry.isDirectory())
        throw new CannotLook(`${source} is a link; such a backup cannot be rehearsed beside its store`);
      if (entry.isFile()) copyFileSync(source, target);
      else mkdirSync(target, { mode: 0o700 });
      sandbox.give(target);
      if (entry.isDirectory()) await copy(source, target, false);
      // A timer watches the limits, so it must get a turn.
      await new Promise(setImmediate);
    }
  };
  try {
    await copy(backup, data, true);
  } catch (thrown) {
    if (systemCode(thrown) === 'ENOSPC') throw new CannotLook('there is no space left to copy the backup');
    throw systemCode(thrown) === undefined ? thrown : cannotRead(backup, thrown);
  }
  return data;
}
