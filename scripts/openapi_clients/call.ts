// Calls every route with the client that hey-api made, with the examples of the document; zod judges what is sent and answered.
import { readFileSync } from "node:fs";
import { client } from "./client.gen";
import * as sdk from "./sdk.gen";

type Values = Record<string, unknown>;
type Parameter = { name: string; in: "path" | "query" | "header"; example?: unknown };
type Operation = {
  operationId: string;
  parameters: Parameter[];
  requestBody?: { content: { "application/json": { example: unknown } } };
};

// What a route may answer to an example: done, or refused for a reason that the document names.
const REACHED = [200, 201, 304, 403, 404, 409, 422];
// What the routes of these names are called with beside their examples: names as people give them.
const OTHERS: [string, Values, Values][] = [
  ["get_plan", { id: "Prüfung 1.a" }, {}],
  ["show", { id: "Prüfung 1.a:1.5" }, {}],
  ["get_step", { id: "Prüfung 1.a:1.5" }, {}],
  ["search", {}, { query: "read", since: "2024-02-29" }],
  ["search", {}, { query: "read", since: "2024-01-31" }],
];

const camel = (name: string) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

async function main(): Promise<number> {
  const document = JSON.parse(readFileSync(process.env["OPENAPI"]!, "utf8"));
  client.setConfig({ baseUrl: process.env["ADDRESS"]! as never, auth: () => process.env["TOKEN"]! });
  const items = Object.values(document.paths) as Record<string, Operation>[];
  const operations = new Map(items.flatMap((it) => Object.values(it)).map((it) => [it.operationId, it]));
  const faults: string[] = [];
  let reached = 0;

  async function call(name: string, path: Values, query: Values): Promise<void> {
    const run = (sdk as unknown as Record<string, (options: Values) => Promise<any>>)[camel(name)];
    if (!run) return void faults.push(`${name}: there is no function`);
    const body = operations.get(name)!.requestBody?.content["application/json"].example;
    // What a route does not take may not be there, not even empty.
    const given = Object.entries({ path, query }).filter(([, it]) => Object.keys(it).length > 0);
    const options = { ...Object.fromEntries(given), ...(body === undefined ? {} : { body }) };
    try {
      if (name === "follow_events") {
        const over = new AbortController();
        const { stream } = await run({ ...options, signal: over.signal });
        const first = await stream.next();
        over.abort();
        return void (first.done ? faults.push(`${name}: the stream has ended`) : reached++);
      }
      const { response, error } = await run(options);
      const status = response?.status;
      const isRefusal = typeof error?.code === "string";
      if (error !== undefined && !isRefusal) faults.push(`${name}: ${status} ${String(error?.message ?? error).slice(0, 600)}`);
      else if (!REACHED.includes(status) || error?.code === "no-such-route") faults.push(`${name}: ${status} ${error?.code}`);
      else reached++;
    } catch (error) {
      faults.push(`${name}: ${String(error).slice(0, 600)}`);
    }
  }

  for (const [name, operation] of operations) {
    const of = (place: string) =>
      Object.fromEntries(
        operation.parameters.filter((it) => it.in === place && "example" in it).map((it) => [it.name, it.example]),
      );
    await call(name, of("path"), of("query"));
  }
  for (const [name, path, query] of OTHERS) await call(name, path, query);
  faults.forEach((it) => console.log(it));
  console.log(`hey-api with zod: ${reached} calls of ${operations.size} routes, ${faults.length} faults`);
  return faults.length > 0 ? 1 : 0;
}

main().then((code) => process.exit(code));
