import type { Dirent, Stats, StatsFs } from 'node:fs';

/** What a look at a directory needs of the file system, as `node:fs/promises` has it. */
export interface Disk {
  access(path: string, mode: number): Promise<void>;
  stat(path: string): Promise<Stats>;
  lstat(path: string): Promise<Stats>;
  statfs(path: string): Promise<StatsFs>;
  opendir(path: string, options: { bufferSize: number }): Promise<AsyncIterable<Dirent>>;
}
