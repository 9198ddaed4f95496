import { playKind } from '../../rotation-kinds.ts';

playKind('moved to another directory');
