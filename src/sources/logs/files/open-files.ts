import { systemCode } from '../../../core/errors.ts';
import type { Log } from '../../../core/ports.ts';
import { checked, type Disk, type Problems, statReal } from '../discovery/disk.ts';
import type { Place } from './generation.ts';

/**
 * Open files, of a bounded number. An open file loses nothing when it is renamed or deleted, and its inode is not given to
 * another file. The file that was used longest ago is closed first. Two kinds of files are never closed: an archive that is being
 * unpacked, and a file that could not be opened again because it was deleted, or renamed to a place that is not looked at.
 */
export interface OpenFiles {
  /** The file's descriptor, or undefined if it cannot be opened now or its path leads to another file by now. */
  open(file: Place): number | undefined;
  /** Opens the file if there is room for it. If `fd` is given, a descriptor of a file that has none yet, room is made. */
  hold(file: Place, fd?: number): void;
  close(file: Place): void;
  /** Hands an open file's descriptor over. */
  release(file: Place): number | undefined;
}

interface OpenFilesDeps {
  disk: Disk;
  problems: Problems;
  log: Log;
  maxOpen: number;
}

const exhausted = new Set(['EMFILE', 'ENFILE']);
const cannotOpen = 'file cannot be opened';

/** Nothing keeps the unread bytes of a file that is not open. The operator is told once, before any bytes are lost. */
function createWarning(log: Log): (limit: number) => void {
  let isWarned = false;
  return (limit) => {
    if (isWarned) return;
    isWarned = true;
    log.write('warn', 'more log files than may be open at once', {
      limit,
      loss: 'unread lines of a file that is not open are lost if it is deleted or moved to where no path matches',
      remedy: 'raise LimitNOFILE or ulimit -n, and match the directory of rotated files in paths',
    });
  };
}

export function createOpenFiles({ disk, problems, log, maxOpen }: OpenFilesDeps): OpenFiles {
  const held = new Set<Place>();
  /** Open files that could not be opened again, so that room is made by closing others. They are looked up once. */
  const pinned = new Set<Place>();
  const count = () => held.size + pinned.size;
  /** Lowered when the system allows fewer open files, so that the rest of the process can open files, too. */
  let limit = maxOpen;
  const warn = createWarning(log);

  const release = (file: Place): number | undefined => {
    const { fd } = file;
    held.delete(file);
    pinned.delete(file);
    file.fd = undefined;
    return fd;
  };

  const close = (file: Place) => {
    const fd = release(file);
    if (fd === undefined) return;
    try {
      disk.close(fd);
    } catch (thrown) {
      problems.report(file.real, 'file could not be closed', thrown, 'debug');
    }
  };

  const canReopen = (file: Place): boolean =>
    file.state !== 'unlinked' && (file.at !== '' || statReal(disk, file) !== undefined);

  const makeRoom = (wanted: number) => {
    for (const file of held) {
      if (wanted <= 0) return;
      if (file.isUnpacking) continue;
      if (canReopen(file)) {
        close(file);
        wanted--;
      } else {
        held.delete(file);
        pinned.add(file);
      }
    }
  };

  const makeRoomForOne = () => {
    if (count() < limit) return;
    warn(limit);
    makeRoom(count() + 1 - limit);
  };

  const openPath = (path: string): number => {
    try {
      return disk.open(path);
    } catch (thrown) {
      if (!exhausted.has(systemCode(thrown) ?? '')) throw thrown;
      makeRoom(Math.ceil(count() / 2));
      limit = Math.max(1, count());
      problems.report(path, 'too many open files; the agent holds fewer from now on', thrown);
      return disk.open(path);
    }
  };

  const open = (file: Place): number | undefined => {
    if (file.fd !== undefined) {
      if (held.delete(file) || (file.at !== '' && pinned.delete(file))) held.add(file);
      return file.fd;
    }
    makeRoomForOne();
    try {
      file.fd = checked(disk, openPath(file.real), ({ dev, ino }) => dev === file.dev && ino === file.ino);
    } catch (thrown) {
      if (systemCode(thrown) !== 'ENOENT') problems.report(file.real, cannotOpen, thrown);
      return undefined;
    }
    if (file.fd === undefined) return undefined;
    problems.resolve(file.real);
    held.add(file);
    return file.fd;
  };

  return {
    open,
    hold(file, fd) {
      if (file.fd !== undefined) return;
      if (fd !== undefined) {
        makeRoomForOne();
        file.fd = fd;
        held.add(file);
        problems.resolve(file.real);
      } else if (count() < limit) open(file);
      else warn(limit);
    },
    close,
    release,
  };
}
