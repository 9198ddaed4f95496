import { systemCode } from '../../../core/errors.ts';
import type { Disk } from './disk.ts';
import type { Trail } from './trail.ts';
import type { Troubles } from './troubles.ts';

/**
 * Open files, a bounded number. A descriptor is kept while there is room, because a file that is renamed or
 * deleted loses nothing as long as it is open; the one used longest ago goes first, an unlinked file's never.
 */
export interface Descriptors {
  /** The trail's open file, or undefined if it cannot be opened now or its path leads to another file by now. */
  open(trail: Trail): number | undefined;
  /** Opens the file if there is room for it. */
  hold(trail: Trail): void;
  close(trail: Trail): void;
  readonly count: number;
}

const exhausted = new Set(['EMFILE', 'ENFILE']);

export function createDescriptors(
  { disk, troubles }: { disk: Disk; troubles: Troubles },
  maxOpen: number,
): Descriptors {
  const held = new Set<Trail>();
  /** Falls when the system allows fewer, so that others in this process find some, too. */
  let limit = maxOpen;

  const close = (trail: Trail) => {
    if (trail.fd === undefined) return;
    held.delete(trail);
    const { fd } = trail;
    trail.fd = undefined;
    try {
      disk.close(fd);
    } catch (thrown) {
      troubles.tell(trail.real, 'file did not close well', thrown, 'debug');
    }
  };

  const makeRoom = (wanted: number) => {
    for (const trail of held) {
      if (wanted <= 0) return;
      if (trail.standing === 'unlinked') continue;
      close(trail);
      wanted--;
    }
  };

  const openPath = (path: string): number => {
    try {
      return disk.open(path);
    } catch (thrown) {
      if (!exhausted.has(systemCode(thrown) ?? '')) throw thrown;
      makeRoom(Math.ceil(held.size / 2));
      limit = Math.max(1, held.size);
      troubles.tell(path, 'too many open files, the agent holds fewer from now on', thrown);
      return disk.open(path);
    }
  };

  const openChecked = (trail: Trail): number | undefined => {
    const fd = openPath(trail.real);
    let isSame = false;
    try {
      const stat = disk.fstat(fd);
      isSame = stat.dev === trail.dev && stat.ino === trail.ino;
    } finally {
      if (!isSame) disk.close(fd);
    }
    return isSame ? fd : undefined;
  };

  const open = (trail: Trail): number | undefined => {
    if (trail.fd !== undefined) {
      held.delete(trail);
      held.add(trail);
      return trail.fd;
    }
    makeRoom(held.size + 1 - limit);
    try {
      trail.fd = openChecked(trail);
    } catch (thrown) {
      if (systemCode(thrown) !== 'ENOENT') troubles.tell(trail.real, 'file cannot be opened', thrown);
      return undefined;
    }
    if (trail.fd === undefined) return undefined;
    troubles.over(trail.real);
    held.add(trail);
    return trail.fd;
  };

  return {
    open,
    hold(trail) {
      if (trail.fd === undefined && held.size < limit) open(trail);
    },
    close,
    get count() {
      return held.size;
    },
  };
}
