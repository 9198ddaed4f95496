import type { ClusterOptions } from '../clusters/block.ts';

const placeholder = /\{(domain|cluster|address)\}/g;

/** Which placeholders the arguments of a command have. */
export function asks([, ...args]: readonly string[]): Record<'domain' | 'cluster' | 'address', boolean> {
  const has = (name: string) => args.some((arg) => arg.includes(`{${name}}`));
  return { domain: has('domain'), cluster: has('cluster'), address: has('address') };
}

/** Whether each cluster of the group is asked for its view. */
export function asksEachCluster(command: readonly string[]): boolean {
  const { cluster, address } = asks(command);
  return cluster || address;
}

/** The argument list for one domain through one cluster; a placeholder without a value stays. */
export function commandFor(
  [program = '', ...args]: readonly string[],
  domain: string,
  through?: Pick<ClusterOptions, 'name' | 'rpcAddress'>,
): string[] {
  const values: Record<string, string | undefined> = {
    domain,
    cluster: through?.name,
    address: through?.rpcAddress,
  };
  return [
    program,
    ...args.map((arg) => arg.replace(placeholder, (written, name: string) => values[name] ?? written)),
  ];
}
