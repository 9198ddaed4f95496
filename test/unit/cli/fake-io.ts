import { type Io, plainScreen } from '../../../src/agent/cli/io.ts';

/** An Io that stores its output. */
export function fakeIo(cwd: string, env: Record<string, string> = {}): Io & { out(): string; err(): string } {
  let [out, err] = ['', ''];
  return {
    stdout(text) {
      out += text;
    },
    stderr(text) {
      err += text;
    },
    env,
    cwd,
    screen: plainScreen,
    out: () => out,
    err: () => err,
  };
}
