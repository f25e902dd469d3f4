/** All weathers; a world's is drawn from its seed. */
import { incidentWeathers } from "./incident-weathers.ts";
import { restlessWeathers, type Weather } from "./weather.ts";

export const weathers: readonly Weather[] = [...restlessWeathers, ...incidentWeathers];
