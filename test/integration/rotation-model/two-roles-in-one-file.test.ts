import { playKind } from '../../rotation-kinds.ts';

playKind('two roles in one file');
