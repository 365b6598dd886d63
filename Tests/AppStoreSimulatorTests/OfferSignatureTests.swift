import Foundation
import Testing

@testable import AppStoreSimulator

@Suite("The store checks the signatures of offers as Apple does") struct OfferSignatureTests {
    let hand = ManualClock()
    let store: Simulator
    let pair = OfferKeyPair()

    init() { store = hand.emptyStore() }

    private func text(_ object: [String: Any]) throws -> String {
        String(decoding: try JSONSerialization.data(withJSONObject: object), as: UTF8.self)
    }

    /// Nil when the store accepts, else its reason.
    private func reason(_ fields: [String: Any]) throws -> String? {
        let answer = try store.control("POST", "/simulator/offer-signatures", try text(fields))
        #expect(answer.code == 200, "\(answer.json)")
        let reason = answer.json.text("reason")
        #expect(answer.json["accepted"] as? Bool == (reason == nil))
        return reason
    }

    @Test("The classic form is accepted in its order, with its separator, in the form of DER")
    func classic() throws {
        #expect(try reason(try pair.classic()) == "no key with this id is registered")
        #expect(try pair.register(in: store) == 201)
        #expect(try reason(try pair.classic()) == nil)
        #expect(try reason(try pair.classic(token: "")) == nil)
        let upper = try pair.classic { $0["app_account_token"] = OfferKeyPair.token.uppercased() }
        #expect(try reason(upper) == nil, "the token is signed in lower case")
        let unfit = "the signature does not fit these values in their order"
        #expect(try reason(try pair.classic(separator: Array("\u{2062}".utf8))) == unfit)
        #expect(try reason(try pair.classic(separator: [])) == unfit)
        for (field, value) in [
            ("product_id", "com.example.tracker.weekly"), ("offer_id", "summer50"), ("app_account_token", ""),
            ("nonce", "1f8fad5b-d9cb-469f-a165-70867728950e"),
        ] {
            #expect(try reason(try pair.classic { $0[field] = value }) == unfit, "\(field)")
        }
        let swapped = try pair.classic { ($0["product_id"], $0["offer_id"]) = ($0["offer_id"], $0["product_id"]) }
        #expect(try reason(swapped) == unfit)
        #expect(try reason(try pair.classic(isRaw: true)) == "the signature is not in the form of DER")
        #expect(try reason(try pair.classic { $0["signature"] = "?" }) == "the signature is not Base64")
        #expect(try reason(try pair.classic { $0["bundle_id"] = "com.example.other" }) == "the store sells another app")
        let loud = try pair.classic(nonce: OfferKeyPair.nonce.uppercased())
        #expect(try reason(loud) == "the nonce is not in lower case")
        #expect(try reason(try pair.classic(nonce: "once")) == "the nonce is no UUID")
        #expect(try OfferKeyPair(id: "K1").register(in: store) == 201)
        #expect(try reason(try pair.classic()) == unfit, "the id has another key now")
    }

    @Test("A signature is good for 24 hours")
    func age() throws {
        #expect(try pair.register(in: store) == 201)
        hand.move(seconds: 86_400)
        #expect(try reason(try pair.classic()) == nil)
        #expect(try reason(["jws": try pair.jws()]) == nil)
        hand.move(seconds: 0.001)
        #expect(try reason(try pair.classic()) == "the signature is older than 24 hours")
        #expect(try reason(["jws": try pair.jws()]) == "the signature is older than 24 hours")
        #expect(try reason(try pair.classic(at: ManualClock.start + 90_000_000)) == "the signature is of the future")
    }

    @Test("A JWS is accepted with its header, its claims and the raw form of its signature")
    func jws() throws {
        #expect(try pair.register(in: store) == 201)
        func reason(
            isDER: Bool = false, _ change: (inout [String: Any], inout [String: Any]) -> Void = { _, _ in }
        ) throws -> String? {
            try self.reason(["jws": try pair.jws(isDER: isDER, change: change)])
        }
        #expect(try reason() == nil)
        #expect(try reason { $1["transactionId"] = "1" } == nil)
        #expect(try reason(isDER: true) == "the signature is not the 64 bytes of r and s")
        #expect(try reason { header, _ in header["alg"] = "ES384" } == "alg is not ES256")
        #expect(try reason { header, _ in header["typ"] = "JOSE" } == "typ is not JWT")
        #expect(try reason { header, _ in header["kid"] = "K9" } == "no key with this kid is registered")
        #expect(try reason { header, _ in header["kid"] = nil }?.contains("kid") == true)
        #expect(try reason { $1["iss"] = "me" } == "iss is not the issuer of the key")
        #expect(try reason { $1["bid"] = "com.example.other" } == "the store sells another app")
        #expect(try reason { $1["nonce"] = OfferKeyPair.nonce.uppercased() } == "the nonce is no UUID in lower case")
        #expect(try reason { $1["offerIdentifier"] = nil } == "offerIdentifier is missing")
        #expect(try reason { $1["aud"] = "appstoreconnect-v1" }?.contains("aud") == true)
        #expect(try reason { $1["iat"] = Int64.max } == "the signature is of the future")
        func introduces(_ claims: inout [String: Any]) {
            claims["aud"] = "introductory-offer-eligibility"
            claims["offerIdentifier"] = nil
            claims["allowIntroductoryOffer"] = true
        }
        #expect(try reason { introduces(&$1) } == "transactionId is missing")
        #expect(
            try reason {
                introduces(&$1)
                $1["transactionId"] = "1"
            } == nil)
        let parts = try pair.jws().split(separator: ".")
        let other = try pair.jws { $1["productId"] = "com.example.tracker.weekly" }.split(separator: ".")
        let mixed = "\(parts[0]).\(other[1]).\(parts[2])"
        #expect(try self.reason(["jws": mixed]) == "the signature does not fit header and payload")
        #expect(try self.reason(["jws": "a.b"]) == "the JWS has not three parts")
    }

    @Test("A promotional offer with a signature is taken when Apple accepts it")
    func redemption() throws {
        #expect(try pair.register(in: store) == 201)
        let shopper = try Shopper("loyal", in: store)
        func redeem(_ handed: [String: Any], token: String = OfferKeyPair.token) throws -> (Int, String?) {
            let body = try text(["action": "redeem_offer", "app_account_token": token, "signature": handed])
            let answer = try store.control("POST", "/simulator/customers/\(shopper.name)/actions", body)
            return (answer.code, answer.json.text("error"))
        }
        let good = try pair.classic()
        let unfit = "Apple refuses the offer: the signature does not fit these values in their order"
        let other = "22222222-2222-4222-8222-222222222222"
        let refused = try redeem(good, token: other)
        #expect(refused.0 == 409 && refused.1 == unfit)
        #expect(try store.control("GET", "/simulator/truth/\(shopper.name)").json.log == ["purchased"])
        #expect(try redeem(good).0 == 200)
        hand.move(seconds: 61)
        let receipt = try #require(store.latestReceipt(of: shopper.name))
        #expect(try store.ask(receipt).latestRows.texts("promotional_offer_id") == ["winter50", nil])
        let bought = try shopper.act(#""action":"buy","jws":"x""#)
        #expect(bought.code == 409, "only a promotional offer has a signature")
    }

    @Test("A promotional offer has the id that the purchase names, and a JWS must name the same")
    func namedOffer() throws {
        #expect(try pair.register(in: store) == 201)
        let shopper = try Shopper("cancels", in: store)
        hand.move(seconds: 100)
        let own = try #require(try shopper.deliveries().first?.text("transaction_id"))
        func back(_ offer: String, transaction: String) throws -> (code: Int, json: [String: Any]) {
            let jws = try pair.jws {
                $1["offerIdentifier"] = offer
                $1["transactionId"] = transaction
            }
            return try shopper.act(
                #""action":"resubscribe","offer":"promotional","offer_id":"back25","jws":"\#(jws)""#)
        }
        #expect(try back("winter50", transaction: own).code == 409)
        #expect(try back("back25", transaction: "570000040000000").code == 409, "another customer's transaction")
        let answer = try back("back25", transaction: own)
        #expect(answer.code == 200, "\(answer.json)")
        let receipt = try #require(answer.json.text("receipt"))
        #expect(try store.ask(receipt).latestRows.texts("promotional_offer_id") == ["back25", nil])
    }

    @Test("Rubbish is refused")
    func whatIsRefused() throws {
        for odd in [
            "{", "{}", #"{"key_id":"","issuer_id":"i","public_key":"p"}"#,
            #"{"key_id":"k","issuer_id":"i","public_key":"nonsense"}"#,
        ] {
            #expect(try store.control("POST", "/simulator/offer-keys", odd).code == 400, "\(odd)")
        }
        for odd in ["[]", "{}", #"{"jws":7}"#, #"{"key_id":"K1"}"#] {
            #expect(try store.control("POST", "/simulator/offer-signatures", odd).code == 400, "\(odd)")
        }
    }
}

extension [String: Any] {
    /// The kinds of the events of the first subscription of a truth.
    fileprivate var log: [String]? {
        let log = (self["subscriptions"] as? [[String: Any]])?.first?["log"] as? [[String: Any]]
        return log?.compactMap { $0.text("kind") }
    }
}
