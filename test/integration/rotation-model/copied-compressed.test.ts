import { playKind } from '../../rotation-kinds.ts';

playKind('copied, truncated and compressed');
