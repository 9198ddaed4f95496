// Installs the dependencies if they are missing or stale, so that every npm script works in a fresh clone.
import { ensureInstalled, ensureNode } from './setup.mjs';

ensureNode();
ensureInstalled();
