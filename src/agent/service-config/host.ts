import { dialled, formatAddress, isLoopback, isWildcard, parseAddress } from '../../core/address.ts';
import { reporterKeys } from '../config/cross/reporters.ts';
import { entriesAt, nodeAt, placeOf, scalarAt, type TreeNode, textAt } from '../config/tree.ts';
import type { Graft } from './graft.ts';
import { readGoAddress } from './judge.ts';

/** What is beside the roles on this host: their log file, scrape endpoint and UDP port. */
export function discoverHost(
  service: TreeNode,
  roles: readonly string[],
  localHosts: ReadonlySet<string>,
  graft: Graft,
) {
  const known = new Set(entriesAt(service, 'services').map(([name]) => name));
  const ports = new Set<string>();
  for (const role of roles) {
    if (known.size > 0 && !known.has(role)) continue;
    discoverLog(service, role, graft);
    const reporters = reporterKeys.filter(
      (key) => nodeAt(service, 'services', role, 'metrics', key) !== undefined,
    );
    // With two the service does not start; which of them would count is anybody's guess.
    if (reporters.length !== 1) continue;
    if (reporters[0] === 'pullmetrics') discoverScrape(service, role, graft);
    if (reporters[0] === 'pushmetrics') discoverPort(service, role, localHosts, ports, graft);
  }
}

function discoverLog(service: TreeNode, role: string, graft: Graft): void {
  const file = textAt(service, 'log', 'outputFile');
  if (!file) return;
  const logs = ['services', role, 'logs'];
  graft.put([...logs, 'paths'], [literalGlob(file)], placeOf(service, ['log', 'outputFile']));
  const encoding = textAt(service, 'log', 'encoding');
  if (encoding === 'json' || encoding === 'console') {
    graft.put([...logs, 'encoding'], encoding, placeOf(service, ['log', 'encoding']));
  }
  const levelKey = textAt(service, 'log', 'levelKey');
  if (levelKey) graft.put([...logs, 'levelKey'], levelKey, placeOf(service, ['log', 'levelKey']));
}

/** A file's name as a pattern that matches it alone. */
const literalGlob = (file: string): string => file.replace(/[*?[\]{}()!\\]/g, '\\$&');

function discoverScrape(service: TreeNode, role: string, graft: Graft): void {
  const path = ['services', role, 'metrics', 'pullmetrics'];
  const text = textAt(service, ...path, 'listenAddress');
  const network = scalarAt(service, ...path, 'listenNetwork') ?? 'tcp';
  const address = parseAddress(readGoAddress(text ?? '') ?? '');
  if (!address || address.port === 0 || network === 'unix') return;
  const page = textAt(service, ...path, 'handlerPath') ?? '/metrics';
  const host = formatAddress({ ...address, host: dialled(address.host) });
  const url = `http://${host}${page.startsWith('/') ? page : `/${page}`}`;
  graft.put(['services', role, 'scrape', 'url'], url, placeOf(service, [...path, 'listenAddress']));
}

/** Roles of one process push to one port: the first listens for all, their `svc_service` tells them apart. */
function discoverPort(
  service: TreeNode,
  role: string,
  localHosts: ReadonlySet<string>,
  taken: Set<string>,
  graft: Graft,
): void {
  const path = ['services', role, 'metrics', 'pushmetrics', 'hostPort'];
  const address = parseAddress(textAt(service, ...path) ?? '');
  if (!address?.port) return;
  const { host } = address;
  if (!isLoopback(host) && !isWildcard(host) && !localHosts.has(host)) return;
  const listen = formatAddress(address);
  if (taken.has(listen)) return;
  taken.add(listen);
  graft.put(['services', role, 'statsd', 'listen'], listen, placeOf(service, path));
}

/** Addresses at which watched roles listen, for the check of the agent's own listeners. */
export function serviceListeners(
  service: TreeNode,
  roles: readonly string[],
): { role: string; address: string }[] {
  return roles.flatMap((role) => {
    const text = textAt(service, 'services', role, 'metrics', 'pullmetrics', 'listenAddress');
    const address = text === undefined ? undefined : readGoAddress(text);
    return address === undefined ? [] : [{ role, address }];
  });
}
