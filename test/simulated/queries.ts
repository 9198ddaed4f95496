import { type Filling, fill, type TargetJson } from '../../tools/grafana.ts';
import { endSeconds } from './time.ts';

/** One series of an answer, with its samples, or with the sample of an instant query. */
interface Answered {
  metric: Record<string, string>;
  values: readonly (readonly [seconds: number, value: number])[];
}

/** What a viewer has chosen, and the step that Grafana would use. */
export interface View extends Filling {
  rangeSeconds: number;
  stepSeconds: number;
  /** The end of the range. Default: the end of the simulated hour. */
  endSeconds?: number;
}

interface Answer {
  status: string;
  error?: string;
  data?: {
    result: { metric: Record<string, string>; value?: [number, string]; values?: [number, string][] }[];
  };
}

/** Sends a panel's query to a Prometheus. Throws the server's error. */
export async function ask(address: string, target: TargetJson, view: View): Promise<Answered[]> {
  const parameters = new URLSearchParams({ query: fill(target.expr!, view) });
  const end = view.endSeconds ?? endSeconds;
  if (target.instant) parameters.set('time', String(end));
  else {
    parameters.set('start', String(end - view.rangeSeconds));
    parameters.set('end', String(end));
    parameters.set('step', String(view.stepSeconds));
  }
  const path = target.instant ? 'query' : 'query_range';
  const response = await fetch(`http://${address}/api/v1/${path}`, { method: 'POST', body: parameters });
  const { status, error, data } = (await response.json()) as Answer;
  if (status !== 'success') throw new Error(error);
  return data!.result.map(({ metric, value, values = [value!] }) => ({
    metric,
    values: values.map(([seconds, text]) => [seconds, Number(text)] as const),
  }));
}

/** The values of a variable's `label_values(selector, label)`. */
export async function valuesOf(address: string, query: string, view: View): Promise<string[]> {
  const [, selector, label] = /^label_values\((.+), (\w+)\)$/.exec(fill(query, view))!;
  const parameters = new URLSearchParams({
    'match[]': selector!,
    start: String(endSeconds - view.rangeSeconds),
    end: String(endSeconds),
  });
  const response = await fetch(`http://${address}/api/v1/label/${label}/values?${parameters}`);
  const { status, error, data } = (await response.json()) as {
    status: string;
    error?: string;
    data: string[];
  };
  if (status !== 'success') throw new Error(error);
  return data;
}
