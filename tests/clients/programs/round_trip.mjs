// A round trip by the AWS SDK for JavaScript v3, which checks the MD5 of bodies; then the same with a wrong one, to see that it does.
// Prints the versions as JSON.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import {
  ChangeMessageVisibilityCommand,
  CreateQueueCommand,
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  QueueDoesNotExist,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SendMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";

const endpoint = process.env.AWS_ENDPOINT_URL;
const sqs = new SQSClient({ endpoint, maxAttempts: 1 });
const { QueueUrl } = await sqs.send(
  new CreateQueueCommand({ QueueName: "work", Attributes: { VisibilityTimeout: "60" }, tags: { a: "b" } }),
);
const { Attributes } = await sqs.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ["All"] }));
assert.equal(Attributes.VisibilityTimeout, "60");

const MessageAttributes = {
  City: { DataType: "String", StringValue: "Zürich" },
  n: { DataType: "Number", StringValue: "42" },
  Blob: { DataType: "Binary.gif", BinaryValue: new Uint8Array([0, 255]) },
};
const MessageBody = 'Zürich & <b>"\n\t\r</b> 𝄞';
const sent = await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody, MessageAttributes }));
assert.equal(sent.MD5OfMessageAttributes, "384e95b09b07bd783252164424eef92b");

const receive = async (more) =>
  (await sqs.send(new ReceiveMessageCommand({ QueueUrl, MessageAttributeNames: ["All"], ...more }))).Messages ?? [];
const [got] = await receive({ MessageSystemAttributeNames: ["All"] });
assert.equal(got.Body, MessageBody);
assert.deepEqual(new Uint8Array(got.MessageAttributes.Blob.BinaryValue), new Uint8Array([0, 255]));
assert.equal(got.MessageAttributes.City.StringValue, "Zürich");
assert.equal(got.Attributes.ApproximateReceiveCount, "1");
assert.deepEqual(await receive(), []);
await sqs.send(
  new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle: got.ReceiptHandle, VisibilityTimeout: 0 }),
);
const [again] = await receive();
await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: again.ReceiptHandle }));

const Entries = [
  { Id: "a", MessageBody: "one" },
  { Id: "b", MessageBody: "two", DelaySeconds: 901 },
];
const batch = await sqs.send(new SendMessageBatchCommand({ QueueUrl, Entries }));
assert.deepEqual([batch.Successful.map(({ Id }) => Id), batch.Failed.map(({ Id }) => Id)], [["a"], ["b"]]);
const [one] = await receive();
await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle: one.ReceiptHandle }));

const waiting = receive({ WaitTimeSeconds: 20 });
await new Promise((resolve) => setTimeout(resolve, 500));
await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: "awaited" }));
assert.equal((await waiting)[0].Body, "awaited");

await assert.rejects(sqs.send(new GetQueueUrlCommand({ QueueName: "nobody" })), QueueDoesNotExist);

// Between the answer and the SDK's check: the body as another one would have it.
const spoiled = new SQSClient({ endpoint, maxAttempts: 1 });
spoiled.middlewareStack.add(
  (next) => async (args) => {
    const result = await next(args);
    result.output.MD5OfMessageBody = "0".repeat(32);
    return result;
  },
  { step: "deserialize", priority: "high" },
);
await assert.rejects(spoiled.send(new SendMessageCommand({ QueueUrl, MessageBody: "x" })), /InvalidChecksumError/);

const version = (name) => JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8")).version;
console.log(
  JSON.stringify({ sdk: version("@aws-sdk/client-sqs"), consumer: version("sqs-consumer"), node: process.versions.node }),
);
sqs.destroy();
spoiled.destroy();
