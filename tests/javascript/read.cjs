// Reads records as the JavaScript SDK does: a JSON list of {headers, key, value} (base64) on the input, one of
// {event} or {error} on the output. Headers are given as texts: the SDK knows no others, though clients give bytes.
const { Kafka } = require("cloudevents");

const bytes = (text) => (text === null ? null : Buffer.from(text, "base64"));

function read(record) {
  const headers = Object.fromEntries(
    Object.entries(record.headers).map(([name, value]) => [name, bytes(value).toString("utf8")]),
  );
  const key = bytes(record.key);
  try {
    const event = Kafka.toEvent({ headers, key: key && key.toString("utf8"), value: bytes(record.value) });
    const { data, ...attributes } = { ...event };
    return { event: attributes, data: Buffer.isBuffer(data) ? { base64: data.toString("base64") } : data };
  } catch (error) {
    return { error: `${error.name}: ${error.message}` };
  }
}

const records = JSON.parse(require("fs").readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(records.map(read)));
