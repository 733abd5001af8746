// The AWS SDK for JavaScript v3 and sqs-consumer with an endpoint of SQSQLite's: a consumer that fails once.
//
//     sqsqlite serve --db queues.db          in another terminal
//     npm install && npm start
//
// sqs-consumer deletes the message that its handler returns. One at which the handler threw stays in the queue: with
// terminateVisibilityTimeout it is shown again at once. The SDK checks the MD5 of each body it sends and receives.

import {
  CreateQueueCommand,
  SendMessageBatchCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { Consumer } from "sqs-consumer";

const sqs = new SQSClient({
  endpoint: process.env.AWS_ENDPOINT_URL ?? "http://localhost:9324",
  region: "us-east-1",
  // anyone: as long as the server has no keys.
  credentials: {
    accessKeyId: process.env.AWS_ACCESS_KEY_ID ?? "anyone",
    secretAccessKey: process.env.AWS_SECRET_ACCESS_KEY ?? "anything",
  },
});

const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName: "orders" }));
const orders = ["a lamp", "two chairs", "a table"];
await sqs.send(
  new SendMessageBatchCommand({
    QueueUrl,
    Entries: orders.map((MessageBody, number) => ({ Id: `${number}`, MessageBody })),
  }),
);

const tries = new Map();
const shipped = [];
const consumer = Consumer.create({
  queueUrl: QueueUrl,
  sqs,
  batchSize: 10,
  waitTimeSeconds: 20,
  terminateVisibilityTimeout: true,
  handleMessage: async (message) => {
    const { Body } = message;
    tries.set(Body, (tries.get(Body) ?? 0) + 1);
    if (Body === "a table" && tries.get(Body) === 1) {
      throw new Error("the van is full");
    }
    shipped.push(Body);
    return message;
  },
});
consumer.on("error", (error) => {
  throw error;
});
consumer.on("processing_error", (error) => console.log(`left in the queue: ${error.message}`));
consumer.on("message_processed", () => {
  if (shipped.length === orders.length) {
    consumer.stop();
  }
});
consumer.on("stopped", () => {
  console.log(`shipped: ${shipped.toSorted().join(", ")}; tables tried: ${tries.get("a table")}`);
  sqs.destroy();
});
consumer.start();
