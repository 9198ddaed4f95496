import { setFlagsFromString } from 'node:v8';

/**
 * Keeps the heap small however the agent is started: with V8's defaults it takes some 30 MiB more of private
 * memory on the same work. `--max-semi-space-size` counts only on Node's command line, so the young generation is
 * kept at its initial 1 MiB by not letting it grow. It takes effect when this module is evaluated, which therefore
 * comes first. Whoever gives Node a size of their own keeps it.
 */
const given = `${process.execArgv.join(' ')} ${process.env.NODE_OPTIONS ?? ''}`;
if (!given.includes('semi-space')) setFlagsFromString('--semi-space-growth-factor=1');
setFlagsFromString('--optimize-for-size');
