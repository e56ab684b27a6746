# SPDX-License-Identifier: Apache-2.0
"""The architectures of the sweep, one row each. A row is data only: nothing of torch is imported here.

A row says where the network comes from ("torchvision:NAME", "timm:NAME", "transformers:CLASS", or "own:FUNCTION" of
nets_*.py), what its inputs are, and which options it is built with. Sizes are chosen so that one run takes 0.1 to 150 ms
on one core. Exporters of torch alternate from row to row, unless a row names one, or `both`."""

import dataclasses
import hashlib
import pathlib

EXPORTERS = ("script", "dynamo")
FORMAT = 1  # raised when export.py writes other weights, inputs or options for the same row
HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True)
class Input:
    """One input: its name, its shape, and how it is filled: "normal", "uniform", "ids" (below `high`) or "ones"."""
    name: str
    shape: tuple
    fill: str = "normal"
    high: int = 0


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    family: str
    source: str
    inputs: tuple
    options: dict
    exporter: str

    def key(self, versions):
        """Changes when the exported file would."""
        own = sorted(HERE.glob("nets_*.py")) if self.source.startswith("own:") else []
        text = repr((FORMAT, self, sorted(versions.items()))) + "".join(file.read_text() for file in own)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def image(size, channels=3):
    return (Input("image", (1, channels, size, size)),)


def video(frames, size):
    return (Input("video", (1, 3, frames, size, size)),)


def tokens(length, high=1000, mask=True):
    ids = Input("input_ids", (1, length), "ids", high)
    return (ids, Input("attention_mask", (1, length), "ones")) if mask else (ids,)


def floats(*shape, name="x"):
    return (Input(name, shape),)


TEXT = {"vocab_size": 1000, "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4,
        "intermediate_size": 1024}
SPEECH = {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 1024,
          "apply_spec_augment": False}
LLAMA = {**TEXT, "num_key_value_heads": 2, "max_position_embeddings": 256, "use_cache": False}

# family, then rows of (name, source, inputs, options, exporters). Options and exporters may be left out.
ROWS = {
    "CNN, older": [
        ("alexnet", "torchvision:alexnet", image(224)),
        ("vgg11_bn", "torchvision:vgg11_bn", image(160)),
        ("squeezenet1_1", "torchvision:squeezenet1_1", image(224)),
        ("googlenet", "torchvision:googlenet", image(224), {"init_weights": True, "aux_logits": False}),
        ("inception_v3", "torchvision:inception_v3", image(299), {"init_weights": True, "aux_logits": False}),
        ("densenet121", "torchvision:densenet121", image(224)),
        ("resnet18", "torchvision:resnet18", image(224), {}, "both"),
        ("resnext50_32x4d", "torchvision:resnext50_32x4d", image(224)),
        ("shufflenet_v2", "torchvision:shufflenet_v2_x1_0", image(224), {}, "both"),
        ("mnasnet1_0", "torchvision:mnasnet1_0", image(224)),
        ("res2net50", "timm:res2net50_48w_2s", image(224)),
        ("dla34", "timm:dla34", image(224)),
        ("hrnet_w18_small", "timm:hrnet_w18_small", image(224)),
        ("cspresnet50", "timm:cspresnet50", image(192)),
        ("skresnet18", "timm:skresnet18", image(224)),
        ("resnest14d", "timm:resnest14d", image(224)),
        ("nf_regnet_b0", "timm:nf_regnet_b0", image(192)),
    ],
    "CNN, newer": [
        ("mobilenet_v3_large", "torchvision:mobilenet_v3_large", image(224), {}, "both"),
        ("efficientnet_v2_s", "torchvision:efficientnet_v2_s", image(192)),
        ("efficientnet_lite0", "timm:efficientnet_lite0", image(224)),
        ("ghostnet_100", "timm:ghostnet_100", image(224)),
        ("repvgg_a0", "timm:repvgg_a0", image(224)),
        ("mobileone_s1", "timm:mobileone_s1", image(224)),
        ("mobilenetv4_conv_small", "timm:mobilenetv4_conv_small", image(224)),
        ("mixnet_s", "timm:mixnet_s", image(224)),
        ("lcnet_100", "timm:lcnet_100", image(224)),
        ("rexnet_100", "timm:rexnet_100", image(224)),
        ("hgnetv2_b0", "timm:hgnetv2_b0", image(224)),
        ("ese_vovnet19b_dw", "timm:ese_vovnet19b_dw", image(224)),
        ("convnext_nano", "timm:convnext_nano", image(224), {}, "both"),
        ("convnextv2_atto", "timm:convnextv2_atto", image(224)),
        ("inception_next_atto", "timm:inception_next_atto", image(224)),
        ("starnet_s1", "timm:starnet_s1", image(224)),
        ("fasternet_t0", "timm:fasternet_t0", image(224)),
        ("mambaout_femto", "timm:mambaout_femto", image(224)),
        ("depthwise_multiplier", "own:depthwise_multiplier", image(112)),
    ],
    "hybrid": [
        ("mobilevit_xs", "timm:mobilevit_xs", image(256), {}, "both"),
        ("mobilevitv2_075", "timm:mobilevitv2_075", image(256)),
        ("efficientformer_l1", "timm:efficientformer_l1", image(224)),
        ("efficientformerv2_s0", "timm:efficientformerv2_s0", image(224)),
        ("levit_128", "timm:levit_128", image(224), {}, "both"),
        ("coat_lite_tiny", "timm:coat_lite_tiny", image(224)),
        ("poolformer_s12", "timm:poolformer_s12", image(224)),
        ("caformer_s18", "timm:caformer_s18", image(192)),
        ("fastvit_t8", "timm:fastvit_t8", image(256)),
        ("repvit_m0_9", "timm:repvit_m0_9", image(224)),
        ("edgenext_x_small", "timm:edgenext_x_small", image(256)),
        ("efficientvit_b0", "timm:efficientvit_b0", image(224)),
        ("efficientvit_m2", "timm:efficientvit_m2", image(224)),
        ("mobilenetv4_hybrid_medium", "timm:mobilenetv4_hybrid_medium", image(224)),
        ("swiftformer_xs", "timm:swiftformer_xs", image(224)),
        ("tiny_vit_5m", "timm:tiny_vit_5m_224", image(224)),
        ("visformer_tiny", "timm:visformer_tiny", image(224)),
        ("botnet26t", "timm:botnet26t_256", image(256)),
        ("lambda_resnet26t", "timm:lambda_resnet26t", image(256)),
    ],
    "image transformer": [
        ("deit_tiny", "timm:deit_tiny_patch16_224", image(224), {}, "both"),
        ("swin_tiny", "timm:swin_tiny_patch4_window7_224", image(224), {}, "both"),
        ("swin_v2_tiny", "timm:swinv2_tiny_window8_256", image(256)),
        ("maxvit_nano", "timm:maxvit_nano_rw_256", image(256)),
        ("davit_tiny", "timm:davit_tiny", image(224)),
        ("xcit_nano", "timm:xcit_nano_12_p16_224", image(224)),
        ("coatnet_nano", "timm:coatnet_nano_rw_224", image(224)),
        ("pvt_v2_b0", "timm:pvt_v2_b0", image(224)),
        ("twins_svt_small", "timm:twins_svt_small", image(224)),
        ("cait_xxs24", "timm:cait_xxs24_224", image(224)),
        ("crossvit_tiny", "timm:crossvit_tiny_240", image(240)),
        ("pit_ti", "timm:pit_ti_224", image(224)),
        ("gcvit_xxtiny", "timm:gcvit_xxtiny", image(224)),
        ("eva02_tiny", "timm:eva02_tiny_patch14_224", image(224)),
        ("hiera_tiny", "timm:hiera_tiny_224", image(224)),
        ("focalnet_tiny", "timm:focalnet_tiny_srf", image(192)),
        ("vit_relpos_small", "timm:vit_relpos_small_patch16_224", image(224)),
        ("dinov2_small", "transformers:Dinov2Model", floats(1, 3, 112, 112, name="pixel_values"),
         {"hidden_size": 192, "num_hidden_layers": 6, "num_attention_heads": 3, "image_size": 112}),
        ("clip_vision", "transformers:CLIPVisionModel", floats(1, 3, 224, 224, name="pixel_values"),
         {"hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 4, "intermediate_size": 1024}),
    ],
    "MLP-mixer": [
        ("mixer_s16", "timm:mixer_s16_224", image(224), {}, "both"),
        ("gmixer_12", "timm:gmixer_12_224", image(224)),
        ("resmlp_12", "timm:resmlp_12_224", image(224)),
        ("gmlp_ti16", "timm:gmlp_ti16_224", image(224)),
        ("convmixer_768_32", "timm:convmixer_768_32", image(84)),
    ],
    "detection": [
        ("ssdlite320", "torchvision:ssdlite320_mobilenet_v3_large", image(320), {"part": "head"}, "both"),
        ("retinanet_r50", "torchvision:retinanet_resnet50_fpn", image(224), {"part": "head"}),
        ("fcos_r50", "torchvision:fcos_resnet50_fpn", image(192), {"part": "head"}),
        ("yolo_csp", "own:yolo_csp", image(320), {}, "both"),
        ("yolos_tiny", "transformers:YolosForObjectDetection", floats(1, 3, 224, 224, name="pixel_values"),
         {"hidden_size": 192, "num_hidden_layers": 6, "num_attention_heads": 3, "intermediate_size": 768,
          "image_size": [224, 224], "num_detection_tokens": 50}),
        ("pointnet", "own:pointnet", floats(1, 3, 1024, name="points")),
    ],
    "segmentation and depth": [
        ("deeplabv3_mobilenet", "torchvision:deeplabv3_mobilenet_v3_large", image(256), {}, "both"),
        ("lraspp_mobilenet", "torchvision:lraspp_mobilenet_v3_large", image(320)),
        ("fcn_resnet50", "torchvision:fcn_resnet50", image(128)),
        ("unet_small", "own:unet", image(128), {}, "both"),
        ("segformer_b0", "transformers:SegformerForSemanticSegmentation",
         floats(1, 3, 256, 256, name="pixel_values")),
        ("raft_small", "torchvision:raft_small", (Input("first", (1, 3, 128, 128)), Input("second", (1, 3, 128, 128))),
         {"part": "flow"}),
    ],
    "super-resolution and image generation": [
        ("edsr_small", "own:edsr", image(64), {}, "both"),
        ("espcn", "own:espcn", image(128, 1)),
        ("srgan_generator", "own:style_transfer", image(128)),
        ("swin2sr", "transformers:Swin2SRForImageSuperResolution", floats(1, 3, 48, 48, name="pixel_values"),
         {"embed_dim": 60, "depths": [2, 2], "num_heads": [6, 6], "image_size": 48, "window_size": 8, "upscale": 2}),
        ("diffusion_unet", "own:diffusion_unet", (Input("sample", (1, 4, 32, 32)), Input("timestep", (1,), "uniform"),
                                                  Input("context", (1, 16, 128))), {}, "both"),
        ("vae_decoder", "own:vae_decoder", floats(1, 4, 16, 16, name="latent")),
        ("dcgan_generator", "own:dcgan", floats(1, 100, name="noise")),
    ],
    "video": [
        ("r3d_18", "torchvision:r3d_18", video(8, 56)),
        ("mc3_18", "torchvision:mc3_18", video(8, 56)),
        ("r2plus1d_18", "torchvision:r2plus1d_18", video(8, 56)),
        ("s3d", "torchvision:s3d", video(16, 112), {"part": "pooled"}),
        ("x3d_like", "own:x3d", video(8, 80)),
        ("unet_3d", "own:unet3d", floats(1, 1, 32, 32, 32, name="volume")),
    ],
    "speech and sound": [
        ("wav2vec2", "transformers:Wav2Vec2Model", floats(1, 16000, name="input_values"), SPEECH, "both"),
        ("hubert", "transformers:HubertModel", floats(1, 16000, name="input_values"), SPEECH),
        ("wavlm", "transformers:WavLMModel", floats(1, 16000, name="input_values"), SPEECH),
        ("whisper_encoder", "transformers:WhisperModel", floats(1, 80, 400, name="input_features"),
         {"part": "encoder", "d_model": 256, "encoder_layers": 4, "encoder_attention_heads": 4, "encoder_ffn_dim": 1024,
          "decoder_layers": 1, "decoder_attention_heads": 4, "max_source_positions": 200, "vocab_size": 1000,
          "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}, "both"),
        ("ast", "transformers:ASTModel", floats(1, 128, 128, name="input_values"),
         {"hidden_size": 192, "num_hidden_layers": 6, "num_attention_heads": 3, "intermediate_size": 768,
          "max_length": 128}),
        ("encodec_encoder", "transformers:EncodecModel", floats(1, 1, 24000, name="hidden_states"),
         {"part": "encoder", "num_filters": 16}),
        ("conformer", "own:conformer", floats(1, 200, 80, name="features"), {}, "both"),
        ("conv_tasnet", "own:conv_tasnet", floats(1, 1, 8000, name="wave")),
        ("hifigan_vocoder", "own:vocoder", floats(1, 80, 32, name="mel")),
        ("kws_dscnn", "own:kws_dscnn", floats(1, 1, 49, 10, name="mfcc")),
        ("kws_tcresnet", "own:kws_tcresnet", floats(1, 40, 98, name="mfcc")),
        ("vad_lstm", "own:vad", (Input("chunk", (1, 512)), Input("state", (2, 1, 64))), {}, "both"),
        ("crnn_ocr", "own:crnn", floats(1, 1, 32, 160, name="line")),
        ("rnnoise_gru", "own:rnnoise", floats(1, 20, 42, name="features")),
    ],
    "text encoder": [
        ("bert", "transformers:BertModel", tokens(128), TEXT, "both"),
        ("distilbert", "transformers:DistilBertModel", tokens(128),
         {"vocab_size": 1000, "dim": 256, "n_layers": 4, "n_heads": 4, "hidden_dim": 1024}),
        ("roberta", "transformers:RobertaModel", tokens(96), TEXT),
        ("deberta", "transformers:DebertaModel", tokens(64), {**TEXT, "relative_attention": True,
                                                              "pos_att_type": ["c2p", "p2c"]}),
        ("deberta_v2", "transformers:DebertaV2Model", tokens(64), {**TEXT, "relative_attention": True,
                                                                   "pos_att_type": ["c2p", "p2c"]}),
        ("electra", "transformers:ElectraModel", tokens(128), {**TEXT, "embedding_size": 128}),
        ("albert", "transformers:AlbertModel", tokens(128), {**TEXT, "embedding_size": 64}),
        ("mobilebert", "transformers:MobileBertModel", tokens(64), {"vocab_size": 1000, "num_hidden_layers": 6}),
        ("mpnet", "transformers:MPNetModel", tokens(64), TEXT),
        ("squeezebert", "transformers:SqueezeBertModel", tokens(128), {**TEXT, "embedding_size": 256}),
        ("t5_encoder", "transformers:T5EncoderModel", tokens(128),
         {"vocab_size": 1000, "d_model": 256, "d_kv": 64, "d_ff": 1024, "num_layers": 4, "num_heads": 4}, "both"),
        ("clip_text", "transformers:CLIPTextModel", tokens(77), {**TEXT, "eos_token_id": 2}),
        ("xlnet", "transformers:XLNetModel", tokens(64, mask=False),
         {"vocab_size": 1000, "d_model": 256, "n_layer": 3, "n_head": 4, "d_inner": 1024}),
        ("text_cnn", "own:text_cnn", tokens(128, mask=False)),
    ],
    "text decoder": [
        ("gpt2", "transformers:GPT2LMHeadModel", tokens(64),
         {"vocab_size": 1000, "n_embd": 256, "n_layer": 4, "n_head": 4, "use_cache": False}, "both"),
        ("llama", "transformers:LlamaForCausalLM", tokens(64), LLAMA, "both"),
        ("opt", "transformers:OPTForCausalLM", tokens(64),
         {"vocab_size": 1000, "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "ffn_dim": 1024,
          "word_embed_proj_dim": 256, "max_position_embeddings": 256, "use_cache": False}),
        ("qwen2", "transformers:Qwen2ForCausalLM", tokens(48), LLAMA),
        ("gemma", "transformers:GemmaForCausalLM", tokens(48), {**LLAMA, "head_dim": 64}),
        ("gpt_neox", "transformers:GPTNeoXForCausalLM", tokens(64), {**TEXT, "use_cache": False}),
        ("bloom", "transformers:BloomForCausalLM", tokens(64),
         {"vocab_size": 1000, "hidden_size": 256, "n_layer": 4, "n_head": 4, "use_cache": False}),
        ("mixtral", "own:mixture_of_experts", floats(1, 32, 128)),
        ("linear_attention", "own:linear_attention", tokens(128, mask=False)),
    ],
    "recurrent": [
        ("lstm_tagger", "own:lstm_tagger", tokens(64, mask=False), {}, "both"),
        ("gru_tagger", "own:gru_tagger", tokens(64, mask=False)),
        ("seq2seq_gru", "own:seq2seq", tokens(24, mask=False)),
    ],
    "graph, tables and time series": [
        ("gnn_scatter", "own:gnn", (Input("nodes", (500, 32)), Input("edges", (2, 4000), "ids", 500)), {}, "both"),
        ("graph_attention", "own:graph_attention", (Input("nodes", (200, 32)), Input("edges", (2, 2000), "ids", 200))),
        ("patchtst", "transformers:PatchTSTModel", floats(1, 256, 7, name="past_values"),
         {"num_input_channels": 7, "context_length": 256, "patch_length": 16, "patch_stride": 8, "d_model": 64,
          "num_hidden_layers": 3, "num_attention_heads": 4, "ffn_dim": 128}),
        ("patchtsmixer", "transformers:PatchTSMixerModel", floats(1, 256, 7, name="past_values"),
         {"num_input_channels": 7, "context_length": 256, "patch_length": 16, "patch_stride": 16, "d_model": 32,
          "num_layers": 4}, "dynamo"),  # the other exporter gets its patches wrong
        ("tcn", "own:tcn", floats(1, 8, 512, name="series"), {}, "both"),
        ("nbeats", "own:nbeats", floats(16, 96, name="series")),
        ("dlrm", "own:dlrm", (Input("dense", (32, 13)), Input("sparse", (32, 8), "ids", 1000))),
        ("tab_transformer", "own:tab_transformer", (Input("numbers", (16, 10)), Input("classes", (16, 12), "ids", 50)), {},
         "dynamo"),
    ],
}


def cases():
    """Every case, in order. The exporters take turns; the second of `both` has "-dynamo" behind its name."""
    made = []
    turn = 0
    for family, rows in ROWS.items():
        for name, source, inputs, *rest in rows:
            options = rest[0] if rest else {}
            exporter = rest[1] if len(rest) > 1 else EXPORTERS[turn % 2]
            turn += len(rest) < 2
            if exporter == "both":
                made += [Case(name, family, source, inputs, options, "script"),
                         Case(f"{name}-dynamo", family, source, inputs, options, "dynamo")]
            else:
                made.append(Case(name, family, source, inputs, options, exporter))
    return made
