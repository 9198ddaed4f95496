import { addressesMeet, formatAddress, parseAddress } from '../../core/address.ts';
import { roles as usualRoles } from '../../core/catalog.ts';
import { AgentError, faultLine } from '../../core/errors.ts';
import { machineAddresses } from '../config/environment.ts';
import { entriesAt, textAt } from '../config/tree.ts';
import { serviceListeners } from './host.ts';
import { readServiceFiles } from './read.ts';

/** What a first configuration needs to know of the service. */
export interface StarterFacts {
  roles: readonly string[];
  serviceConfig: readonly string[];
  /** Where the agent's page is shown, out of the way of the roles. */
  pullAddress: string;
  adminAddress: string;
  /** Whether the service's files say where the log is. */
  logKnown: boolean;
  /** Whether they say which cluster this is. */
  clusterKnown: boolean;
}

/** Reads the service's files for `init`. Throws `usage` if one of them cannot be read. */
export function readForStarter(
  files: readonly string[],
  named: readonly string[],
  { cwd, env }: { cwd: string; env: Readonly<Record<string, string | undefined>> },
): StarterFacts {
  const { tree, findings } = readServiceFiles(files, cwd, env);
  const [first] = findings;
  if (first) throw new AgentError('usage', { where: '--service-config', what: faultLine(first) });
  const found = entriesAt(tree, 'services').map(([name]) => name);
  const wanted = named.length > 0 ? named : found;
  const roles = wanted.length > 0 ? wanted : usualRoles;
  const taken = serviceListeners(tree, roles).map(({ address }) => address);
  const pullAddress = freeAddress('0.0.0.0', 9464, taken);
  return {
    roles,
    serviceConfig: files,
    pullAddress,
    adminAddress: freeAddress('127.0.0.1', 9465, [...taken, pullAddress]),
    logKnown: Boolean(textAt(tree, 'log', 'outputFile')),
    clusterKnown: textAt(tree, 'clusterGroupMetadata', 'currentClusterName') !== undefined,
  };
}

/** The first address from a port on that no role of the service has. */
function freeAddress(host: string, firstPort: number, taken: readonly string[]): string {
  const localHosts = machineAddresses();
  const others = taken.flatMap((address) => parseAddress(address) ?? []);
  let port = firstPort;
  while (others.some((other) => addressesMeet({ host, port }, other, localHosts))) port++;
  return formatAddress({ host, port });
}
