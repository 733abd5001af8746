// Package orders shows a suite that moves time, against a server that runs:
//
//	sqsqlite serve --test-mode     in another terminal
//	go test ./...
package orders

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

var server = endpoint()

func endpoint() string {
	if url := os.Getenv("AWS_ENDPOINT_URL"); url != "" {
		return url
	}
	return "http://localhost:9324"
}

func TestAnOrderOfAKilledWorkerIsVisibleAgainAfter30Seconds(t *testing.T) {
	orders := newQueue(t)
	orders.send("a table", 0)
	orders.expect("a table", 0)
	orders.expect("", 0)
	advance(t, 30*time.Second)
	orders.expect("a table", 0)
}

func TestALongPollGetsAnOrderWhoseDelayOf15MinutesEnds(t *testing.T) {
	orders := newQueue(t)
	orders.send("two chairs", 900)
	advance(t, 890*time.Second)
	done := make(chan struct{})
	go func() {
		defer close(done)
		orders.expect("two chairs", 20)
	}()
	advance(t, 10*time.Second)
	<-done
}

// queue is the only queue of an empty server.
type queue struct {
	t      *testing.T
	client *sqs.Client
	url    *string
}

func newQueue(t *testing.T) queue {
	t.Helper()
	post(t, "reset", "")
	client := sqs.New(sqs.Options{
		BaseEndpoint: aws.String(server),
		Region:       "eu-central-1",
		Credentials:  credentials.NewStaticCredentialsProvider("anyone", "anything", ""),
	})
	made, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("orders")})
	if err != nil {
		t.Fatal(err)
	}
	return queue{t, client, made.QueueUrl}
}

func (q queue) send(body string, delay int32) {
	q.t.Helper()
	_, err := q.client.SendMessage(q.t.Context(), &sqs.SendMessageInput{
		QueueUrl: q.url, MessageBody: aws.String(body), DelaySeconds: delay,
	})
	if err != nil {
		q.t.Fatal(err)
	}
}

// expect receives one message with this body, or none if it is empty. It waits up to `wait` seconds of the server.
func (q queue) expect(body string, wait int32) {
	q.t.Helper()
	got, err := q.client.ReceiveMessage(q.t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: q.url, WaitTimeSeconds: wait,
	})
	var bodies []string
	if err == nil {
		for _, message := range got.Messages {
			bodies = append(bodies, *message.Body)
		}
	}
	if found := strings.Join(bodies, ", "); err != nil || found != body {
		q.t.Errorf("received %q, want %q (%v)", found, body, err)
	}
}

func advance(t *testing.T, by time.Duration) {
	t.Helper()
	post(t, "clock", fmt.Sprintf(`{"advance": %g}`, by.Seconds()))
}

func post(t *testing.T, page, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(
		t.Context(), http.MethodPost, server+"/_test/"+page, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Sqsqlite-Test", "1")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", page, answer.Status)
	}
}
