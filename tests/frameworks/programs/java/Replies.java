// SPDX-License-Identifier: Apache-2.0
// Amazon's temporary queue client, as its users have it: asks one queue, then answers on another.
import com.amazonaws.services.sqs.AmazonSQSRequester;
import com.amazonaws.services.sqs.AmazonSQSRequesterClientBuilder;
import com.amazonaws.services.sqs.AmazonSQSResponder;
import com.amazonaws.services.sqs.AmazonSQSResponderClientBuilder;
import com.amazonaws.services.sqs.MessageContent;
import java.util.concurrent.TimeUnit;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.Message;
import software.amazon.awssdk.services.sqs.model.SendMessageRequest;

public class Replies {
    public static void main(String[] urls) throws Exception {
        SqsClient sqs = SqsClient.create();
        AmazonSQSRequester requester = AmazonSQSRequesterClientBuilder.standard().withAmazonSQS(sqs).build();
        for (String body : new String[] {"from Java", "from Java again"}) {
            SendMessageRequest request = SendMessageRequest.builder().queueUrl(urls[0]).messageBody(body).build();
            Message reply = requester.sendMessageAndGetResponse(request, 600, TimeUnit.SECONDS);
            System.out.println(reply.body() + " " + reply.messageAttributes().get("length").stringValue());
        }
        requester.shutdown();
        AmazonSQSResponder responder = AmazonSQSResponderClientBuilder.standard().withAmazonSQS(sqs).build();
        for (int answered = 0; answered < 2; ) {
            for (Message message : sqs.receiveMessage(
                    r -> r.queueUrl(urls[1]).waitTimeSeconds(20).messageAttributeNames("All")).messages()) {
                MessageContent request = MessageContent.fromMessage(message);
                if (!responder.isResponseMessageRequested(request)) throw new IllegalStateException(message.toString());
                responder.sendResponseMessage(request, new MessageContent("Java has " + request.getMessageBody()));
                sqs.deleteMessage(r -> r.queueUrl(urls[1]).receiptHandle(message.receiptHandle()));
                answered++;
            }
        }
        responder.shutdown();
        System.exit(0);
    }
}
