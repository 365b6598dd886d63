import Foundation
import NIOHTTP1
import Testing

@testable import AppStore

@Suite("Retry-After is read as seconds or as a date") struct RetryAfterTests {
    private let now = Date(timeIntervalSince1970: 1_800_000_000)

    private func seconds(_ values: String..., date: String? = nil) -> Double? {
        var headers = HTTPHeaders(values.map { ("Retry-After", $0) })
        if let date { headers.add(name: "Date", value: date) }
        return RetryAfter.seconds(in: headers, now: now)
    }

    @Test("Seconds are read in every form")
    func secondsInAllTheirForms() {
        #expect(seconds("120") == 120)
        #expect(seconds(" 5 ") == 5)
        #expect(seconds("1.5") == 1.5)
        #expect(seconds("0") == 0)
        #expect(seconds("-30") == 0)
        #expect(seconds("99999999") == 99_999_999)
        #expect(seconds("3", "7") == 7)
        #expect(seconds("3, 7") == 7)
    }

    @Test("Dates are read by the server's own clock")
    func datesAreReadByTheServersOwnClock() {
        #expect(seconds("Fri, 15 Jan 2027 08:01:00 GMT") == 60)
        #expect(seconds("Friday, 15-Jan-27 08:01:00 GMT") == 60)
        #expect(seconds("Fri Jan 15 08:01:00 2027") == 60)
        #expect(seconds("Fri, 15 Jan 2027 08:01:00 GMT", date: "Fri, 15 Jan 2027 08:00:50 GMT") == 10)
        #expect(seconds("Fri, 15 Jan 2027 07:00:00 GMT") == 0)
    }

    @Test("Large numbers are moments")
    func largeNumbersAreMoments() {
        #expect(seconds("1800000030000") == 30)
        #expect(seconds("1800000030") == 30)
        #expect(seconds("1700000000000") == 0)
        #expect(seconds("30", date: "nonsense") == 30)
    }

    @Test(
        "What cannot be read asks nothing",
        arguments: ["", "soon", "12 s", "0x10", "1e3", "inf", "nan", "--5", "2027-01-15T08:01:00Z", "Fri, 99 Jan"])
    func whatCannotBeReadAsksNothing(text: String) {
        #expect(seconds(text) == nil)
    }

    @Test("Without the header nothing is asked")
    func withoutTheHeaderNothingIsAsked() {
        #expect(seconds() == nil)
    }
}
