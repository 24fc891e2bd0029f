//! Values of a file as those of an attribute: what says that there is none becomes null, and packed numbers are unpacked.

use array::{Attribute, Buffer, Column, Compression, DataType, Element, Scalar};

use crate::source::Field;

impl Field {
    /// The attribute that it becomes. A packed number becomes a double.
    pub fn attribute(&self, name: &str, compression: Compression) -> Attribute {
        let of = self.value_type();
        let mut attribute = Attribute::new(name, of).compressed(compression);
        if !self.missing.is_empty() {
            attribute = attribute.nullable();
        }
        let fill = self
            .fill
            .or((!self.missing.is_empty()).then_some(Scalar::Int(0)));
        match fill {
            Some(fill) => attribute.fill(self.decoded(fill)),
            None if self.scale.is_some() => attribute.fill(self.decoded(Scalar::Int(0))),
            None => attribute,
        }
    }

    /// The type of the attribute's values.
    pub fn value_type(&self) -> DataType {
        match self.scale {
            Some(_) => DataType::F64,
            None if self.half => DataType::F32,
            None => self.data_type,
        }
    }

    /// A value of the file as one of the attribute.
    fn decoded(&self, value: Scalar) -> Scalar {
        let value = value.cast(self.data_type).unwrap_or(Scalar::Null);
        let missing = self.missing.iter().filter_map(|of| of.cast(self.data_type));
        let is_missing = missing.into_iter().any(|of| of == value);
        let value = match value {
            Scalar::Int(bits) if self.half => Scalar::Float(f64::from(single(bits as u16))),
            value => value,
        };
        match self.scale {
            _ if is_missing => Scalar::Null,
            Some((factor, offset)) => value
                .to_f64()
                .map_or(Scalar::Null, |value| Scalar::Float(value * factor + offset)),
            None => value,
        }
    }

    /// Values of the file as those of the attribute.
    pub fn column(&self, values: Buffer) -> Column {
        let valid = (!self.missing.is_empty()).then(|| self.valid(&values));
        let values = if self.half { singles(&values) } else { values };
        let values = match self.scale {
            Some(scale) => unpacked(&values, scale),
            None => values,
        };
        match valid {
            Some(valid) => Column::nullable(values, valid),
            None => Column::new(values),
        }
    }

    /// A byte for each value, 0 where it says that there is none.
    fn valid(&self, values: &Buffer) -> Vec<u8> {
        fn of<T: Element + PartialEq>(values: &Buffer, missing: &Buffer) -> Vec<u8> {
            let missing = missing.values::<T>();
            // NaN does not equal itself.
            let nan = missing.iter().any(|of| of.to_f64().is_nan());
            let none = |of: &T| missing.contains(of) || (nan && of.to_f64().is_nan());
            let values = values.values::<T>().iter();
            values.map(|of| u8::from(!none(of))).collect()
        }
        let fitting = self.missing.iter().filter_map(|of| of.cast(self.data_type));
        let fitting: Vec<Scalar> = fitting.collect();
        let Ok(missing) = Column::of_scalars(self.data_type, &fitting) else {
            return vec![1; values.len()];
        };
        let missing = missing.values();
        match self.data_type {
            DataType::Bool | DataType::U8 => of::<u8>(values, missing),
            DataType::I8 => of::<i8>(values, missing),
            DataType::I16 => of::<i16>(values, missing),
            DataType::I32 => of::<i32>(values, missing),
            DataType::I64 => of::<i64>(values, missing),
            DataType::U16 => of::<u16>(values, missing),
            DataType::U32 => of::<u32>(values, missing),
            DataType::U64 => of::<u64>(values, missing),
            DataType::F32 => of::<f32>(values, missing),
            DataType::F64 => of::<f64>(values, missing),
        }
    }
}

/// Floats of 32 bits of the bits of those of 16.
fn singles(values: &Buffer) -> Buffer {
    let mut buffer = Buffer::zeros(DataType::F32, values.len());
    let cells = buffer.values_mut::<f32>().iter_mut();
    cells
        .zip(values.values::<u16>())
        .for_each(|(to, &bits)| *to = single(bits));
    buffer
}

/// The float of 32 bits that has the value of one of 16.
fn single(bits: u16) -> f32 {
    let (sign, exponent, fraction) = (bits >> 15, bits >> 10 & 31, u32::from(bits & 0x3ff));
    let sign = u32::from(sign) << 31;
    match exponent {
        // 2^-24 is the least that there is.
        0 => f32::from_bits(sign | (fraction as f32 / 16_777_216.0).to_bits()),
        31 => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
        _ => f32::from_bits(sign | (u32::from(exponent) + 112) << 23 | fraction << 13),
    }
}

/// Values times a factor and plus an offset.
fn unpacked(values: &Buffer, (factor, offset): (f64, f64)) -> Buffer {
    fn of<T: Element>(values: &Buffer, number: impl Fn(T) -> f64) -> Vec<f64> {
        values.values::<T>().iter().map(|&of| number(of)).collect()
    }
    let numbers = match values.data_type() {
        DataType::Bool | DataType::U8 => of::<u8>(values, f64::from),
        DataType::I8 => of::<i8>(values, f64::from),
        DataType::I16 => of::<i16>(values, f64::from),
        DataType::I32 => of::<i32>(values, f64::from),
        DataType::I64 => of::<i64>(values, |of| of as f64),
        DataType::U16 => of::<u16>(values, f64::from),
        DataType::U32 => of::<u32>(values, f64::from),
        DataType::U64 => of::<u64>(values, |of| of as f64),
        DataType::F32 => of::<f32>(values, f64::from),
        DataType::F64 => of::<f64>(values, |of| of),
    };
    let mut buffer = Buffer::zeros(DataType::F64, numbers.len());
    let cells = buffer.values_mut::<f64>().iter_mut().zip(numbers);
    cells.for_each(|(to, of)| *to = of * factor + offset);
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_of_16_bits_are_those_of_32() {
        for (bits, value) in [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65_504.0),
            (0x0001, 2f32.powi(-24)),
            (0x03ff, 1023.0 * 2f32.powi(-24)),
            (0x0400, 2f32.powi(-14)),
            (0x3555, 0.333_251_95),
            (0x7c00, f32::INFINITY),
            (0xfc00, f32::NEG_INFINITY),
        ] {
            assert_eq!(single(bits).to_bits(), value.to_bits(), "{bits:x}");
        }
        assert_eq!(single(0x8000).to_bits(), (-0f32).to_bits());
        assert!(single(0x7e00).is_nan());
    }

    #[test]
    fn missing_values_are_null_and_packed_ones_doubles() {
        let field = Field {
            name: None,
            half: false,
            data_type: DataType::I16,
            fill: Some(Scalar::Int(-32767)),
            missing: vec![Scalar::Int(-32767), Scalar::Float(7.0)],
            scale: Some((0.5, 100.0)),
            metadata: Vec::new(),
            coded: false,
        };
        let column = field.column(Buffer::of::<i16>(DataType::I16, &[-32767, 4, 7, -2]));
        let got: Vec<Scalar> = (0..4).map(|at| column.get(at)).collect();
        let (null, of) = (Scalar::Null, Scalar::Float);
        assert_eq!(got, [null, of(102.0), null, of(99.0)]);
        let attribute = field.attribute("v", Compression::None);
        assert_eq!(
            (attribute.data_type(), attribute.fill_value()),
            (DataType::F64, null)
        );
        let nan = Field {
            data_type: DataType::F32,
            missing: vec![Scalar::Float(f64::NAN)],
            fill: None,
            scale: None,
            ..field
        };
        let column = nan.column(Buffer::of::<f32>(DataType::F32, &[f32::NAN, 1.5]));
        assert_eq!([column.get(0), column.get(1)], [null, of(1.5)]);
        assert_eq!(nan.attribute("v", Compression::None).fill_value(), of(0.0));
    }
}
