/** Pages for the benches: 100,000 series of the shapes a role shows, deterministic; values move between rounds. */
interface GeneratedPage {
  bytes: Buffer;
  series: number;
}

const operations = [
  'CreateWorkflowExecution',
  'UpdateWorkflowExecution',
  'GetWorkflowExecution',
  'AppendHistory',
];
const bounds = ['0.001', '0.005', '0.01', '0.05', '0.1', '0.5', '1', '5', '10', '+Inf'];

const tags = (n: number) =>
  `svc_service="history",operation="${operations[n % 4]}",domain="${n % 97}",tasklist="t${n}"`;

/** A page of about `lines` sample lines: six in ten belong to histograms, the rest to counters and gauges. */
export function generatePage(lines: number, round: number): GeneratedPage {
  const text: string[] = [];
  const histograms = Math.floor((lines * 0.6) / 12);
  const counters = Math.floor(lines * 0.25);
  const gauges = lines - histograms * 12 - counters;
  text.push('# HELP svc_persistence_requests Calls.', '# TYPE svc_persistence_requests counter');
  for (let n = 0; n < counters; n++) {
    text.push(`svc_persistence_requests{${tags(n)}} ${n * 37 + round * ((n % 3) + 1)}`);
  }
  text.push('# HELP svc_matching_tasklist_backlog Tasks.', '# TYPE svc_matching_tasklist_backlog gauge');
  for (let n = 0; n < gauges; n++) {
    text.push(`svc_matching_tasklist_backlog{${tags(n)}} ${((n * 7919 + round * 31) % 100_003) / 16}`);
  }
  text.push('# HELP svc_persistence_latency Time.', '# TYPE svc_persistence_latency histogram');
  for (let n = 0; n < histograms; n++) {
    const of = tags(n);
    for (let b = 0; b < bounds.length; b++) {
      text.push(`svc_persistence_latency_bucket{${of},le="${bounds[b]}"} ${(n + round) * (b + 1)}`);
    }
    text.push(`svc_persistence_latency_sum{${of}} ${(n + round) * 1.234567}`);
    text.push(`svc_persistence_latency_count{${of}} ${(n + round) * 10}`);
  }
  return { bytes: Buffer.from(`${text.join('\n')}\n`), series: counters + gauges + histograms * 12 };
}
