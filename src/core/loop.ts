/**
 * Header of every request for a role's page; its value names the agent that asks. A listener that finds its
 * own agent's name in it answers 508, so that an agent never relays itself.
 */
export const scrapeMarkHeader = 'x-svc-agent-scrape';
