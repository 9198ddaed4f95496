/** The sum of a metric's series on a page. */
export async function sumOn(url: string, name: string): Promise<number> {
  const page = await (await fetch(url)).text();
  const lines = page.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
  return lines.reduce((total, line) => total + Number(line.slice(line.lastIndexOf(' '))), 0);
}
