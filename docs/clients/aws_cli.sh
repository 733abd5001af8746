#!/bin/bash
# The AWS CLI with an endpoint of SQSQLite's: a queue, its visibility timeout, and a message that takes longer.
#
#     sqsqlite serve --db queues.db          in another terminal
#     bash aws_cli.sh                        needs the AWS CLI: pip install awscli
#
# With a key of `sqsqlite keys add`: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; without keys anyone is served.
# Version 1 of the AWS CLI puts Amazon's own address before AWS_ENDPOINT_URL for SQS, so the option says it each time.
set -euo pipefail
export AWS_ENDPOINT_URL=${AWS_ENDPOINT_URL:-http://localhost:9324}
export AWS_ACCESS_KEY_ID=${AWS_ACCESS_KEY_ID:-anyone} AWS_SECRET_ACCESS_KEY=${AWS_SECRET_ACCESS_KEY:-anything}
export AWS_DEFAULT_REGION=${AWS_DEFAULT_REGION:-us-east-1}

aws() { command aws --endpoint-url "$AWS_ENDPOINT_URL" "$@"; }

aws sqs create-queue --queue-name MyQueue --attributes VisibilityTimeout=60
url=$(aws sqs get-queue-url --queue-name MyQueue --query QueueUrl --output text)

aws sqs set-queue-attributes --queue-url "$url" --attributes VisibilityTimeout=120
aws sqs get-queue-attributes --queue-url "$url" --attribute-names VisibilityTimeout

aws sqs send-message --queue-url "$url" --message-body 'paint the fence' \
    --message-attributes 'colour={DataType=String,StringValue=green}'
handle=$(aws sqs receive-message --queue-url "$url" --wait-time-seconds 10 \
    --query 'Messages[0].ReceiptHandle' --output text)

# The fence is long: five minutes from now, not from the receive.
aws sqs change-message-visibility --queue-url "$url" --receipt-handle "$handle" --visibility-timeout 300
aws sqs delete-message --queue-url "$url" --receipt-handle "$handle"
aws sqs delete-queue --queue-url "$url"
