// A test suite without AWS, Docker or waiting. It needs the command sqsqlite and Node 20 or newer:
//
//     npm install && npm test

import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";
import {
  CreateQueueCommand,
  GetQueueAttributesCommand,
  ListQueuesCommand,
  SendMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { shipNext } from "./shipping.mjs";
import { startServer } from "./sqsqlite-server.mjs";

const server = await startServer();
const options = { endpoint: server.url, credentials: { accessKeyId: "anyone", secretAccessKey: "anything" } };
const sqs = new SQSClient({ ...options, region: "eu-central-1" });
let orders;

const createQueue = async (client, QueueName, Attributes) =>
  (await client.send(new CreateQueueCommand({ QueueName, Attributes }))).QueueUrl;
const send = (QueueUrl, MessageBody, DelaySeconds) =>
  sqs.send(new SendMessageCommand({ QueueUrl, MessageBody, DelaySeconds }));

beforeEach(async () => {
  await server.reset();
  orders = await createQueue(sqs, "orders");
});
after(() => {
  sqs.destroy();
  server.stop();
});

test("an order is shipped once", async () => {
  await send(orders, "a lamp");
  assert.equal(await shipNext(sqs, orders), "a lamp");
  await server.advance(3600);
  assert.equal(await shipNext(sqs, orders), undefined);
});

test("the next worker ships an order that failed, when its visibility timeout has ended", async () => {
  await send(orders, "a table");
  const full = async () => {
    throw new Error("the van is full");
  };
  await assert.rejects(shipNext(sqs, orders, { ship: full }), /the van is full/);
  assert.equal(await shipNext(sqs, orders), undefined);
  await server.advance(30);
  assert.equal(await shipNext(sqs, orders), "a table");
});

test("a worker that waits gets an order whose delay of 15 minutes ends", async () => {
  await send(orders, "two chairs", 900);
  await server.advance(890);
  const shipped = shipNext(sqs, orders, { wait: 20 });
  await server.advance(10);
  assert.equal(await shipped, "two chairs");
});

test("an order that fails twice becomes a dead letter", async () => {
  const dead = await createQueue(sqs, "orders-dead");
  const { Attributes } = await sqs.send(
    new GetQueueAttributesCommand({ QueueUrl: dead, AttributeNames: ["QueueArn"] }),
  );
  const policy = { deadLetterTargetArn: Attributes.QueueArn, maxReceiveCount: 2 };
  const fragile = await createQueue(sqs, "fragile", { RedrivePolicy: JSON.stringify(policy) });
  await send(fragile, "a mirror");
  for (let time = 1; time <= 2; time += 1) {
    await assert.rejects(
      shipNext(sqs, fragile, {
        ship: async () => {
          throw new Error("broken");
        },
      }),
    );
    await server.advance(30);
  }
  assert.equal(await shipNext(sqs, fragile), undefined);
  assert.equal(await shipNext(sqs, dead), "a mirror");
});

test("no queue is left of the tests before, and another region has its own", async () => {
  const elsewhere = new SQSClient({ ...options, region: "us-east-1" });
  const list = async (client) => (await client.send(new ListQueuesCommand({}))).QueueUrls ?? [];
  assert.deepEqual(await list(sqs), [orders]);
  assert.deepEqual(await list(elsewhere), []);
  const other = await createQueue(elsewhere, "orders");
  await send(orders, "a lamp");
  assert.equal(await shipNext(elsewhere, other), undefined);
  elsewhere.destroy();
});
