import Testing

@testable import Ledger

@Suite("Prices in thousandths")
struct MilliunitsTests {
    @Test(
        "A price is exact",
        arguments: [
            ("0", 0), ("10", 10_000), ("4.99", 4_990), ("4.990", 4_990), ("4.9900", 4_990), ("0.001", 1),
            ("1.2340", 1_234), ("007.5", 7_500), ("1000", 1_000_000), ("999999999999.999", 999_999_999_999_999),
            ("0.0010000000000000000000", 1), ("4.9995", nil), ("1.2345", nil), ("", nil), (".5", nil), ("5.", nil),
            ("-1", nil), ("+1", nil), ("1e3", nil), ("1,5", nil), ("1000000000000", nil),
            ("9223372036854775.807", nil), ("99999999999999999999", nil), ("٣", nil), (" 1", nil), ("1.2.3", nil),
            ("NaN", nil), ("0x10", nil),
        ] as [(String, Int64?)])
    func exact(_ text: String, _ milliunits: Int64?) {
        let price = Milliunits(decimal: text)
        #expect(price?.count == milliunits)
        if let price { #expect(Milliunits(decimal: price.decimal) == price) }
    }

    @Test(
        "A price is written with two or three decimals",
        arguments: [
            (0, "0.00"), (1, "0.001"), (4_990, "4.99"), (10_500, "10.50"), (-10, "-0.01"),
            (.max, "9223372036854775.807"), (.min, "-9223372036854775.808"),
        ] as [(Int64, String)])
    func written(_ milliunits: Int64, _ text: String) {
        #expect(Milliunits(milliunits).decimal == text)
    }
}
