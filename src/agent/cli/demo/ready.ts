import { AgentError, errorText } from '../../../core/errors.ts';

const withinMs = 20_000;
const askEveryMs = 50;

/** Asks until the answer is 200. Throws `internal` with the last answer if it is not in time, or once aborted. */
export async function untilReady(url: string, signal: AbortSignal): Promise<void> {
  const deadlineMs = performance.now() + withinMs;
  let got = 'none';
  while (!signal.aborted && performance.now() < deadlineMs) {
    try {
      const { status } = await fetch(url, { signal });
      if (status === 200) return;
      got = String(status);
    } catch (thrown) {
      got = errorText((thrown as Error).cause ?? thrown);
    }
    await new Promise((resolve) => setTimeout(resolve, askEveryMs));
  }
  throw new AgentError('internal', {
    where: url,
    what: signal.aborted ? 'no longer waited for' : `no answer 200 within ${withinMs / 1000} s`,
    got,
  });
}
