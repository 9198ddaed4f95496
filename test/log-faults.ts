import {
  createFileFaults,
  type FileFaultsDeps,
  type LogFault,
} from '../src/sources/logs/faults/file-faults.ts';
import { logsOptions, type Tail } from './tail.ts';

/** The faults of a tail's logs, all of which belong to one service. */
export function watchFaults(tail: Tail, paths: readonly string[], freeBytes?: FileFaultsDeps['freeBytes']) {
  const services = { history: logsOptions({ paths: paths.map((path) => tail.path(path)) }) };
  const faults = createFileFaults({
    selection: () => ({ services, selected: new Set(['history']) }),
    files: () => tail.tailer.files(),
    clock: tail.clock,
    freeBytes,
  });
  return {
    /** Reads the logs and looks for faults, as the agent does every 20 seconds. */
    async round(): Promise<readonly LogFault[]> {
      tail.clock.advance(20_000);
      await tail.scan();
      await faults.check();
      return faults.faults();
    },
  };
}
