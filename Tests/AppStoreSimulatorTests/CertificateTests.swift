import Testing

@testable import AppStoreSimulator

@Suite("The simulator makes its own authority and changes its certificate on request") struct CertificateTests {
    @Test func `the certificate is changed by hand, where there is one`() throws {
        let identity = try StoreIdentity()
        let store = Simulator(SimulatorOptions(seed: 3), identity: identity)
        func show(_ name: String, at store: Simulator) -> SimulatorReply {
            store.respond(
                to: SimulatorRequest(
                    method: "POST", path: "/simulator/certificate", body: Array(#"{"certificate":"\#(name)"}"#.utf8)))
        }
        for certificate in StoreCertificate.allCases {
            let reply = show(certificate.rawValue, at: store)
            #expect(reply.code == 200 && identity.certificate == certificate)
            #expect(String(decoding: reply.body, as: UTF8.self) == #"{"certificate":"\#(certificate.rawValue)"}"#)
        }
        #expect(show("borrowed", at: store).code == 400)
        #expect(show("good", at: Simulator(SimulatorOptions(seed: 3))).code == 409)
    }

    @Test func `each authority is its own, and its root holds no key`() throws {
        let (one, other) = (try StoreIdentity().rootPEM, try StoreIdentity().rootPEM)
        #expect(one != other)
        #expect(one.hasPrefix("-----BEGIN CERTIFICATE-----\n") && !one.contains("KEY"))
    }
}
