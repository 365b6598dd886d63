import Foundation
import Testing

@testable import AppStoreSimulator

@Suite("The simulator answers every status of Apple") struct StatusTests {
    let hand = ManualClock()
    let store: Simulator
    let customer: SimulatedCustomer
    let tester: SimulatedCustomer

    init() {
        store = hand.emptyStore()
        customer = store.createCustomer(CustomerScript())
        tester = store.createCustomer(CustomerScript(), environment: .sandbox)
    }

    private func tampered(_ receipt: String) throws -> String {
        var bytes = Array(try #require(Data(base64Encoded: receipt)))
        bytes[bytes.count / 2] ^= 1
        return Data(bytes).base64EncodedString()
    }

    @Test("Every status can be answered")
    func everyStatus() throws {
        #expect(try store.ask(customer.receipt).status == 0)
        #expect(try store.ask(tester.receipt, at: .sandbox).status == 0)
        #expect(try store.ask("").status == 21002)
        #expect(try store.ask("aGVsbG8=").status == 21002)
        #expect(try store.ask("eyJhbGciOiJFUzI1NiJ9.e30.c2ln").status == 21002)
        #expect(try store.ask(tampered(customer.receipt)).status == 21003)
        #expect(try store.ask(customer.receipt, password: "wrong").status == 21004)
        #expect(try store.ask(tester.receipt).status == 21007)
        #expect(try store.ask(customer.receipt, at: .sandbox).status == 21008)
    }

    @Test("What is not a request is refused")
    func whatIsNotARequest() throws {
        #expect(store.answer(Array("{".utf8), at: .production) == Array(#"{"status":21000}"#.utf8))
        #expect(store.answer(Array("[]".utf8), at: .production) == Array(#"{"status":21000}"#.utf8))
        #expect(store.answer(Array("{}".utf8), at: .production) == Array(#"{"status":21002}"#.utf8))
        #expect(store.answer(Array(#"{"receipt-data":7}"#.utf8), at: .production) == Array(#"{"status":21002}"#.utf8))
        let reply = store.respond(to: SimulatorRequest(method: "GET", path: "/verifyReceipt"))
        #expect(reply.code == 200 && reply.body == Array(#"{"status":21000}"#.utf8))
    }

    @Test("A newline in the receipt has Apple's exception")
    func aNewlineInTheReceiptHasApplesException() throws {
        let broken = try store.ask(String(customer.receipt.prefix(76)) + "\n" + customer.receipt.dropFirst(76))
        #expect(broken.status == 21002)
        #expect(broken["exception"] as? String == "java.lang.IllegalArgumentException")
    }

    @Test("The secret rotates")
    func theSecretRotates() throws {
        let old = store.sharedSecret
        #expect(old.count == 32)
        #expect(try store.control("POST", "/simulator/secret", #"{"secret":"new"}"#).code == 200)
        #expect(try store.ask(customer.receipt, password: old).status == 21004)
        #expect(try store.ask(customer.receipt, password: "new").status == 0)
    }

    @Test("A deleted account is gone")
    func aDeletedAccountIsGone() throws {
        #expect(try store.act(CustomerAction.Kind.deleteAccount.action, on: customer.customer))
        #expect(try store.ask(customer.receipt).status == 21010)
    }

    @Test("A restart with the same seed and epoch knows its receipts")
    func aRestartWithTheSameSeedAndEpochKnowsItsReceipts() throws {
        var options = SimulatorOptions(seed: 3)
        options.epochMilliseconds = ManualClock.start
        let before = Simulator(options, clock: hand.clock)
        let after = Simulator(options, clock: hand.clock)
        options.seed = 4
        let other = Simulator(options, clock: hand.clock)
        for customer in before.receipts(from: 195, count: 10) {
            let environment = customer.environment
            let first = try before.ask(customer.receipt, at: environment)
            let again = try after.ask(customer.receipt, at: environment)
            #expect(first.status == 0 || first.status == 21010)
            #expect(NSDictionary(dictionary: first) == NSDictionary(dictionary: again))
            #expect(try other.ask(customer.receipt, at: environment).status == 21003)
        }
    }

    @Test("Any changed byte is noticed")
    func anyChangedByteIsNoticed() throws {
        let codec = ReceiptCodec(seed: 5)
        let identity = ReceiptIdentity(
            customer: 17, creation: StoreTime(milliseconds: ManualClock.start), environment: .sandbox)
        let bytes = codec.encode(identity) { $0.utf8("payload") }
        #expect(bytes.first == 0x30)
        #expect(codec.read(bytes) == .genuine(identity))
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 0x40
            let reading = codec.read(changed)
            #expect(reading == .malformed || reading == .forged, "byte \(index)")
        }
        #expect(codec.read(bytes.dropLast()) == .malformed)
    }
}

extension ReceiptCodec {
    fileprivate func read(_ bytes: ArraySlice<UInt8>) -> Reading { read(Array(bytes)) }
}
