import { spawnSync } from 'node:child_process';
import { afterAll, test } from 'vitest';
import { available, isInstalled } from '../installed.ts';
import { bySize } from '../size.ts';
import { killWhileRotating, type OpenService, timeoutOf } from './rotation/kill-loop.ts';
import {
  buildLumberjack,
  lumberjack,
  multilog,
  python,
  rotatelogs,
  s6log,
  svlogd,
} from './rotation/piped.ts';
import { docker, kubelet, logrotate } from './rotation/rotated.ts';

const kills = Number(process.env.ROTATION_KILLS ?? bySize({ short: 1, long: 1, nightly: 300 }));

const isOnPath = (program: string) =>
  available(program, spawnSync('sh', ['-c', `command -v ${program}`]).status === 0);
const hasLogrotate = isInstalled('logrotate');
const hasSvlogd = isOnPath('svlogd');
const hasMultilog = isOnPath('multilog');
const hasRotatelogs = isOnPath('rotatelogs');
// execlineb runs the processors of s6-log; Debian only recommends its package.
const hasS6Log = isOnPath('s6-log') && isOnPath('/usr/lib/execline/bin/execlineb');
const hasPython = isOnPath('python3');
const built = bySize({
  short: () => undefined,
  long: buildLumberjack,
  nightly: buildLumberjack,
})();
afterAll(() => built?.remove());

const dated = ['dateext', 'dateformat .%Y%m%d-%s'];

const cases: readonly [name: string, isThere: boolean, open: OpenService][] = [
  ['logrotate, create', hasLogrotate, logrotate({ directives: ['create'] })],
  ['logrotate, compress', hasLogrotate, logrotate({ directives: ['create', 'compress'] })],
  [
    'logrotate, compress, delaycompress',
    hasLogrotate,
    logrotate({ directives: ['create', 'compress', 'delaycompress'] }),
  ],
  [
    'logrotate, compress, delaycompress, dateext',
    hasLogrotate,
    logrotate({ directives: ['create', 'compress', 'delaycompress', ...dated], everyMs: 1_100 }),
  ],
  ['logrotate, copytruncate', hasLogrotate, logrotate({ directives: ['copytruncate'] })],
  [
    'logrotate, copytruncate, compress',
    hasLogrotate,
    logrotate({ directives: ['copytruncate', 'compress', 'delaycompress'] }),
  ],
  ['logrotate, olddir', hasLogrotate, logrotate({ directives: ['create'], olddir: true })],
  [
    'logrotate, olddir, compress',
    hasLogrotate,
    logrotate({ directives: ['create', 'compress'], olddir: true }),
  ],
  ['logrotate, copy, compress', hasLogrotate, logrotate({ directives: ['copy', 'compress'] })],
  [
    'logrotate, renamecopy, olddir',
    hasLogrotate,
    logrotate({ directives: ['renamecopy', 'create'], olddir: true }),
  ],
  [
    'logrotate, maxsize',
    hasLogrotate,
    logrotate({ directives: ['create', 'weekly', 'maxsize 20k'], isDue: true }),
  ],
  ['json-file of Docker, compress', true, docker],
  ['kubelet', true, kubelet],
  ['lumberjack, compress', built !== undefined, lumberjack(built?.program ?? '')],
  ['svlogd', hasSvlogd, svlogd(undefined)],
  ['svlogd, gzip', hasSvlogd, svlogd('gzip')],
  ['multilog', hasMultilog, multilog(undefined)],
  ['multilog, gzip', hasMultilog, multilog('gzip')],
  ['rotatelogs, a fixed number of files', hasRotatelogs, rotatelogs(['-n', '60'], 'app.log', '20K')],
  ['s6-log, gzip', hasS6Log, s6log('gzip -nq9')],
];

/** Cases that differ little from others. */
const atNight: typeof cases = [
  ['rotatelogs, by size', hasRotatelogs, rotatelogs([], 'app', '20K')],
  ['rotatelogs, by time', hasRotatelogs, rotatelogs([], 'app.%Y%m%d-%H%M%S.log', '1')],
  ['rotatelogs, a hard link', hasRotatelogs, rotatelogs(['-L', 'app.log'], 'app.%Y%m%d-%H%M%S.log', '1')],
  ['s6-log', hasS6Log, s6log(undefined)],
  [
    'RotatingFileHandler of Python',
    hasPython,
    python("handler = logging.handlers.RotatingFileHandler('app.log', maxBytes=20000, backupCount=300)"),
  ],
  [
    'TimedRotatingFileHandler of Python',
    hasPython,
    python("handler = logging.handlers.TimedRotatingFileHandler('app.log', when='S', backupCount=300)"),
  ],
];

const tried = bySize({ short: cases.slice(2, 3), long: cases, nightly: [...cases, ...atNight] });

for (const [name, isThere, open] of tried)
  test.skipIf(!isThere)(
    `killed while a program rotates: ${name}`,
    { timeout: timeoutOf(kills) },
    async ({ annotate }) => {
      await annotate(await killWhileRotating(open, 0, kills));
    },
  );
