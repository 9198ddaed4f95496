import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A small agent.yaml on free ports with its own state directory. `more` is appended, `admin` is put into its block, and `logs` is
 * the path of history's log.
 */
export function agentFile(
  directory: string,
  {
    logs,
    more = '',
    metrics = '',
    admin = '',
  }: { logs?: string; more?: string; metrics?: string; admin?: string } = {},
): string {
  const file = join(directory, 'agent.yaml');
  const history = logs ? `logs: {paths: [${logs}], startAt: beginning}` : '';
  writeFileSync(
    file,
    `stateDirectory: ${join(directory, 'state')}
metrics:
  pullmetrics: {listenAddress: 127.0.0.1:0}
${metrics}admin: {listenAddress: 127.0.0.1:0${admin && `, ${admin}`}}
services:
  history: {${history}}
${more}`,
  );
  return file;
}

/** Writes an agent.yaml with a state directory in `directory`, both listeners on free ports, and `rest`; returns its path. */
export function writeAgentFile(directory: string, rest: string): string {
  const file = join(directory, 'agent.yaml');
  writeFileSync(
    file,
    `stateDirectory: ${join(directory, 'state')}
metrics: {pullmetrics: {listenAddress: 127.0.0.1:0}}
admin: {listenAddress: 127.0.0.1:0}
${rest}`,
  );
  return file;
}
